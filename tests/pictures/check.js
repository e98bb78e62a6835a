// Replaces the drawings of the page by a line for each, which says what is wrong with it.
const style = (element) => getComputedStyle(element);
const place = (element) => element.getBoundingClientRect();
const readme_width = 900; // pixels, of a README on a usual screen
const is_dark = matchMedia("(prefers-color-scheme: dark)").matches;

// Contrast, as WCAG 2 counts it.
const luminance = (color) => {
  const [red, green, blue] = color.match(/[\d.]+/g).slice(0, 3).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const contrast = (a, b) => {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
};

const problems_of = (svg) => {
  const problems = [];
  const boxes = [...svg.querySelectorAll("rect")].map((each) => ({ at: place(each), fill: style(each).fill }));
  const texts = [...svg.querySelectorAll("text")].map((each) => ({ at: place(each), words: each.textContent, of: each }));
  const page = boxes[0].fill;

  for (const { at, words, of } of texts) {
    // The boxes where it begins, the innermost last.
    const middle = (at.top + at.bottom) / 2;
    const behind = boxes.filter(
      (box) => box.at.left <= at.left && at.left <= box.at.right && box.at.top <= middle && middle <= box.at.bottom,
    );
    const around = behind.at(-1).at;
    if (at.right > around.right || at.top < around.top - 1 || at.bottom > around.bottom + 1)
      problems.push(`"${words}" runs out of its box`);
    const fill = behind.filter((box) => box.fill !== "none").at(-1).fill;
    if (contrast(style(of).fill, fill) < 4.5) problems.push(`"${words}" is hard to read`);
  }
  for (const [i, { at, words }] of texts.entries()) {
    for (const other of texts.slice(i + 1)) {
      const wide = Math.min(at.right, other.at.right) - Math.max(at.left, other.at.left);
      const high = Math.min(at.bottom, other.at.bottom) - Math.max(at.top, other.at.top);
      // The lines of a paragraph may touch each other.
      if (wide > 1 && high > 4) problems.push(`"${words}" is over "${other.words}"`);
    }
  }
  for (const path of svg.querySelectorAll("path.arrow")) {
    if (style(path).fill !== "none" || contrast(style(path).stroke, page) < 3) problems.push("an arrow is hard to see");
  }
  if (luminance(page) > 0.1 === is_dark) problems.push(`it is on ${page}`);
  const shown = Math.min(1, readme_width / svg.viewBox.baseVal.width);
  for (const text of svg.querySelectorAll("g text")) {
    const size = parseFloat(style(text).fontSize) * text.getScreenCTM().a * shown;
    if (size < 8.5) problems.push(`"${text.textContent}" has ${size.toFixed(1)} pixels in a README`);
  }
  return { texts: texts.length, problems };
};

// The font that the drawing asks for, and the widest usual one.
const lines = ["", "DejaVu Sans"].flatMap((font) => {
  const sheet = document.createElement("style");
  if (font) sheet.textContent = `text:not(.chain):not(.condition) { font-family: "${font}" }`;
  document.head.append(sheet);
  return [...document.querySelectorAll("div")].map((div) => {
    const { texts, problems } = problems_of(div.querySelector("svg"));
    const what = `${div.id}, ${is_dark ? "dark" : "light"}${font && ", "}${font}: ${texts} texts`;
    return problems.length ? `FAILED  ${what}: ${problems.slice(0, 3).join("; ")}` : `ok      ${what}`;
  });
});
const report = document.createElement("pre");
report.textContent = lines.join("\n");
document.body.replaceChildren(report);
