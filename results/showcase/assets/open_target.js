(() => {
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const around = target && target.closest("details");
    if (around) { around.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", open);
  open();
})();
