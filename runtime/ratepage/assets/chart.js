// Charts, drawn as SVG by hand: x is time, y begins at 0.

import { el, hour, rate, setText, svg } from "./dom.js";

const width = 240;
const height = 54;

// areaChart returns a chart and a function that draws points [ms, value] into it, of so many
// seconds up to the time now.
export function areaChart(label) {
  const area = svg("path", { class: "area" });
  const line = svg("path", { class: "line" });
  const title = svg("title");
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img" }, title, area, line);
  const [most, from, until] = [el("span"), el("span"), el("span")];
  const scale = el("p", { class: "axis", "aria-hidden": "true" }, most);
  const axis = el("p", { class: "axis", "aria-hidden": "true" }, from, until);
  return {
    elements: [scale, chart, axis],
    draw(all, now, seconds) {
      const span = seconds * 1000;
      const gap = Math.max(3500, 2.5 * span / 120); // without a sample: the line is broken
      const points = all.filter(([at]) => at >= now - span);
      const peak = points.reduce((most, [, v]) => Math.max(most, v), 0);
      const top = Math.max(peak, 1) * 1.08;
      chart.toggleAttribute("data-flat", peak === 0);
      setText(most, peak === 0 ? "" : `peak ${rate(peak)} /s`);
      setText(from, hour(now - span));
      setText(until, hour(now));
      title.textContent = `${label} in the last ${seconds / 60} minutes, at most ${Number(peak.toFixed(1))} per second`;
      const x = (at) => (width * (1 - (now - at) / span)).toFixed(1);
      const y = (v) => (height - 1 - (v / top) * (height - 4)).toFixed(1);
      let outline = "";
      let filled = "";
      let run = [];
      const close = () => {
        if (run.length > 1) {
          const path = run.map(([at, v]) => `${x(at)} ${y(v)}`).join("L");
          outline += `M${path}`;
          filled += `M${x(run[0][0])} ${height}L${path}L${x(run.at(-1)[0])} ${height}Z`;
        }
        run = [];
      };
      for (const p of points) {
        if (run.length > 0 && p[0] - run.at(-1)[0] > gap) close();
        run.push(p);
      }
      close();
      line.setAttribute("d", outline);
      area.setAttribute("d", filled);
    },
  };
}

const bars = 60;

// sparkline returns a chart of one rule and a function that draws its last
// seconds, each [admitted, refused, undecided], which stand on top of each other.
export function sparkline() {
  const paths = ["a", "d", "u"].map((name) => svg("path", { class: name }));
  const base = svg("path", { class: "base", d: `M0 27.5H${bars * 4}` });
  const chart = svg("svg", { viewBox: `0 0 ${bars * 4} 28`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...paths, base);
  return {
    element: chart,
    draw(seconds, mode) {
      chart.dataset.mode = mode;
      const most = Math.max(1, ...seconds.map((parts) => parts.reduce((sum, n) => sum + n, 0)));
      const drawn = paths.map(() => "");
      seconds.slice(-bars).forEach((parts, i, all) => {
        const x = (bars - all.length + i) * 4;
        let y = 27;
        parts.forEach((n, part) => {
          const h = (n / most) * 27;
          if (n > 0) drawn[part] += `M${x} ${y.toFixed(1)}v${(-h).toFixed(1)}h3v${h.toFixed(1)}z`;
          y -= h;
        });
      });
      paths.forEach((path, part) => path.setAttribute("d", drawn[part]));
    },
  };
}
