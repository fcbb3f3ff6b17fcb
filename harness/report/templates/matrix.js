(() => {
  const panels = new Map([...document.querySelectorAll("dialog.panel")].map((panel) => [panel.id, panel]));
  document.documentElement.classList.add("scripted");
  let from = null;
  const name = () => decodeURIComponent(location.hash.slice(1));
  const forget = () => history.replaceState(null, "", location.pathname + location.search);
  const show = (id) => {
    for (const [other, panel] of panels) if (other !== id && panel.open) panel.close("moved");
    const panel = panels.get(id);
    if (!panel || panel.open) return;
    panel.returnValue = "";
    panel.showModal();
    panel.scrollTop = 0;
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (event.target.matches("dialog.panel")) return event.target.close();
    if (!link) return;
    event.preventDefault();
    if (link.matches(".close")) return link.closest("dialog").close();
    const hash = link.getAttribute("href");  // the links of charts have no property of that name
    const id = decodeURIComponent(hash.slice(1));
    if (!panels.has(id)) return;
    if (!link.closest("dialog")) from = link;
    history.replaceState(null, "", hash);
    show(id);
  });
  for (const panel of panels.values()) {
    panel.addEventListener("close", () => {
      if (panel.returnValue === "moved") return;
      forget();
      if (from) from.focus();
    });
  }
  addEventListener("hashchange", () => show(name()));
  if (panels.has(name())) show(name());
})();
