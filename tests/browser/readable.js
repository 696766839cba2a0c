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
    (node) => !(node instanceof SVGElement) && !node.closest("noscript, thead") && visible(node) && [...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
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
    const name = chart.getAttribute("aria-label"), place = chart.getBoundingClientRect();
    const labels = [...chart.querySelectorAll("svg text")].filter((node) => node.textContent.trim() && visible(node));
    const boxes = labels.map((node) => node.getBoundingClientRect());
    labels.forEach((node, i) => {
      const box = boxes[i], style = getComputedStyle(node);
      if (box.left < place.left - 1 || box.right > place.right + 1 || box.top < place.top - 1 || box.bottom > place.bottom + 1)
        wrong.push(`${name}: "${words(node)}" is cut off`);
      if (parseFloat(style.fontSize) < 10) wrong.push(`${name}: "${words(node)}" is ${style.fontSize} high`);
      const found = contrast(colour(style.fill), behind(chart));
      if (found < 4.5) wrong.push(`${name}: "${words(node)}" has a contrast of ${found.toFixed(1)}`);
      for (let k = 0; k < i; k += 1) {
        const other = boxes[k];
        const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
        const down = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
        if (across > 2 && down > 3) wrong.push(`${name}: "${words(node)}" is on top of "${words(labels[k])}"`);
      }
    });
  }
  return wrong;
}
