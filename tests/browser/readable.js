// What is wrong with a page for somebody who reads it, as a list of sentences.
() => {
  const wrong = [];
  const root = document.documentElement;
  const colour = (text) => {
    const [r, g, b, a = 1] = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return { r, g, b, a };
  };
  const over = (top, below) => ({
    r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a), b: top.b * top.a + below.b * (1 - top.a), a: 1,
  });
  const behind = (node) => {
    const layers = [];
    for (let one = node; one instanceof Element; one = one.parentElement) layers.push(colour(getComputedStyle(one).backgroundColor));
    const canvas = matchMedia("(prefers-color-scheme: dark)").matches ? { r: 18, g: 18, b: 18, a: 1 } : { r: 255, g: 255, b: 255, a: 1 };
    return layers.reverse().reduce((below, layer) => over(layer, below), canvas);
  };
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const words = (node) => node.textContent.trim().slice(0, 40);
  const visible = (node) => {
    const style = getComputedStyle(node), box = node.getBoundingClientRect();
    return style.visibility !== "hidden" && style.display !== "none" && style.opacity !== "0" && box.width > 1 && box.height > 1;
  };

  if (root.scrollWidth > innerWidth) wrong.push(`the page is ${root.scrollWidth} px wide, the window ${innerWidth}`);
  const texts = [...document.querySelectorAll("main *")].filter(
    (node) => !(node instanceof SVGElement) && !node.closest("noscript, thead, option, .hidden") && !node.matches("option, button:disabled") && visible(node) && [...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
  for (const node of texts) {
    const box = node.getBoundingClientRect(), style = getComputedStyle(node);
    if (box.right > innerWidth + 1 || box.left < -1) wrong.push(`"${words(node)}" leaves the window`);
    if (style.overflow !== "visible" && node.scrollWidth > node.clientWidth + 1) wrong.push(`"${words(node)}" is cut off`);
    if (parseFloat(style.fontSize) < 11) wrong.push(`"${words(node)}" is ${style.fontSize} high`);
    const found = contrast(colour(style.color), behind(node));
    if (found < 4.5) wrong.push(`"${words(node)}" has a contrast of ${found.toFixed(1)}`);
  }
  for (const frame of document.querySelectorAll(".table"))
    if (frame.scrollWidth > frame.clientWidth + 1) wrong.push(`a table is ${frame.scrollWidth} px wide, its place ${frame.clientWidth}`);

  for (const chart of document.querySelectorAll(".chart")) {
    const labels = [...chart.querySelectorAll("span")], boxes = labels.map((node) => node.getBoundingClientRect());
    labels.forEach((node, i) => boxes.slice(0, i).forEach((other, k) => {
      const across = Math.min(boxes[i].right, other.right) - Math.max(boxes[i].left, other.left);
      const down = Math.min(boxes[i].bottom, other.bottom) - Math.max(boxes[i].top, other.top);
      if (across > 2 && down > 3) wrong.push(`"${words(node)}" is on top of "${words(labels[k])}"`);
    }));
  }
  // What a screen reader reads out.
  for (const node of document.querySelectorAll("main svg:not([aria-hidden]), .track:not([aria-hidden])"))
    if (node.getAttribute("role") !== "img" || !(node.getAttribute("aria-label") || "").trim()) wrong.push("a drawing has no text for a screen reader");
  for (const node of document.querySelectorAll("main input, main select"))
    if (!node.closest("label")?.textContent.trim()) wrong.push(`a ${node.localName} has no label`);
  for (const node of document.querySelectorAll("main table"))
    if (!node.caption?.textContent.trim() || [...node.querySelectorAll("th")].some((th) => th.scope !== "col")) wrong.push("a table has no caption, or headings without scope");
  const ids = [...document.querySelectorAll("[id]:not(svg *)")].map((node) => node.id);
  for (const id of ids.filter((one, i) => ids.indexOf(one) !== i)) wrong.push(`two elements have the id ${id}`);
  for (const node of document.querySelectorAll("main meter, main form button"))
    if (!(node.getAttribute("aria-label") || node.textContent).trim()) wrong.push(`a ${node.localName} says nothing`);
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map((node) => Number(node.localName[1]));
  if (levels[0] !== 1 || levels.some((level, i) => i && level > levels[i - 1] + 1)) wrong.push("a level of headings is left out");
  for (const node of document.querySelectorAll("main button")) if (!node.textContent.trim()) wrong.push("a button has no name");
  return wrong;
}
