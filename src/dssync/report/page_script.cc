// The page is complete without it: it adds the switch of themes, folds long tables away, and shows under the pointer
// the values of a chart.
#include "dssync/report/sections.h"

namespace dssync {

std::string page_script() {
  return R"js('use strict';
(() => {
  const root = document.documentElement;
  const wantsDark = () => matchMedia('(prefers-color-scheme: dark)').matches;
  const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : wantsDark();
  const remember = (theme) => { try { localStorage.setItem('dssync-theme', theme); } catch { /* a page from a file may have none */ } };
  try { const theme = localStorage.getItem('dssync-theme'); if (theme) root.dataset.theme = theme; } catch { /* the same */ }
  const button = document.createElement('button');
  button.id = 'theme';
  button.type = 'button';
  const label = () => { button.textContent = isDark() ? 'Light' : 'Dark'; button.setAttribute('aria-label', 'Use the ' + button.textContent.toLowerCase() + ' theme'); };
  button.addEventListener('click', () => { root.dataset.theme = isDark() ? 'light' : 'dark'; remember(root.dataset.theme); label(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', label);
  label();
  document.body.append(button);

  // Open on paper, and without this script.
  const unfold = (open) => document.querySelectorAll('details').forEach((details) => { details.open = open; });
  addEventListener('beforeprint', () => unfold(true));
  addEventListener('afterprint', () => unfold(false));
  unfold(false);

  const digits = (value) => Number(value.toPrecision(3)).toString();
  const seconds = (value) => value >= 1 ? digits(value) + ' s' : value >= 1e-3 ? digits(value * 1e3) + ' ms' : digits(value * 1e6) + ' us';
  const shown = (value, unit) => unit === 'percent' ? (100 * value).toFixed(1) + ' %' : unit === 'seconds' ? seconds(value)
    : Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en') : digits(value);

  // "low high from to unit [log]": the way from places back to values.
  const axis = (text) => {
    const [low, high, from, to, unit, kind] = text.split(' ');
    const [l, h, f, t] = [low, high, from, to].map(Number);
    const value = (place) => { const share = (place - f) / (t - f); return kind === 'log' ? l * Math.pow(h / l, share) : l + share * (h - l); };
    return { from: f, to: t, unit, value };
  };

  const enliven = (svg) => {
    const x = axis(svg.dataset.x);
    const y = axis(svg.dataset.y);
    const lines = [...svg.querySelectorAll('path.line')].map((path) => ({
      name: path.dataset.name, points: path.getAttribute('d').slice(1).split('L').map((pair) => pair.split(' ').map(Number)) }));
    const title = svg.querySelector('title');
    svg.setAttribute('aria-label', title.textContent + '. ' + svg.querySelector('desc').textContent);
    svg.removeAttribute('aria-labelledby');
    title.remove();  // it would cover the values
    const cursor = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    cursor.setAttribute('class', 'cursor');
    const box = document.createElement('div');
    box.className = 'readout';
    const hide = () => { box.remove(); cursor.remove(); };
    const row = (name, value) => { const line = document.createElement('div'); const left = document.createElement('span'); const right = document.createElement('span');
      left.textContent = name; right.textContent = value; line.append(left, right); return line; };
    const show = (event) => {
      const area = svg.getBoundingClientRect();
      const scale = svg.viewBox.baseVal.width / area.width;
      const place = (event.clientX - area.left) * scale;
      if (place < x.from - 4 || place > x.to + 4) { hide(); return; }
      const near = lines.map((line) => ({ name: line.name, point: line.points.reduce((a, b) => Math.abs(b[0] - place) < Math.abs(a[0] - place) ? b : a) }));
      const at = near.reduce((a, b) => Math.abs(b.point[0] - place) < Math.abs(a.point[0] - place) ? b : a).point[0];
      const head = document.createElement('b');
      head.textContent = (x.unit === 'plain' ? 'iteration ' : '') + shown(x.value(at), x.unit);
      const there = near.filter((entry) => Math.abs(entry.point[0] - at) < 25).sort((a, b) => a.point[1] - b.point[1]).slice(0, 12);
      box.replaceChildren(head, ...there.map((entry) => row(entry.name, shown(y.value(entry.point[1]), y.unit))));
      cursor.setAttribute('d', 'M' + at + ' ' + y.to + 'V' + y.from);
      svg.append(cursor);
      const figure = svg.parentElement;
      figure.append(box);
      const left = at / scale + area.left - figure.getBoundingClientRect().left;
      const turns = left + 16 + box.offsetWidth > figure.offsetWidth;
      box.style.left = Math.max(0, turns ? left - 14 - box.offsetWidth : left + 14) + 'px';
      box.style.top = (area.top - figure.getBoundingClientRect().top + 24) + 'px';
    };
    svg.addEventListener('pointermove', show);
    svg.addEventListener('pointerleave', hide);
  };
  document.querySelectorAll('svg.lines').forEach(enliven);
})();
)js";
}

}  // namespace dssync
