(() => {
  const rows = [...document.querySelectorAll("table.filtered tbody tr")];
  const buttons = [...document.querySelectorAll(".filter button")];
  const words = document.querySelector(".filter input");
  let verdict = "all";
  const show = () => {
    const wanted = words.value.trim().toLowerCase();
    for (const row of rows) {
      const fits = verdict === "all" || row.dataset.verdict === verdict;
      row.hidden = !(fits && row.textContent.toLowerCase().includes(wanted));
    }
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === verdict));
  };
  for (const button of buttons) button.addEventListener("click", () => { verdict = button.value; show(); });
  if (words) { words.addEventListener("input", show); document.querySelector(".filter").hidden = false; }
})();
