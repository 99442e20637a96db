// The look of the page. The colours of series are those of Okabe and Ito's palette, made darker for white and lighter
// for black paper; with dashes, markers and letters nothing depends on colour alone.
#include "dssync/report/sections.h"

namespace dssync {
namespace {

constexpr const char* kColors = R"css(:root {
  --paper: #ffffff; --raised: #f6f7f9; --ink: #1b2330; --quiet: #5c6675; --rule: #d9dde3; --grid: #e8ebef; --accent: #0b5cad;
  --bad: #b3261e; --warn: #fdf3e1; --hot: #c2361b; --on-dot: #ffffff;
  --s0: #0072b2; --s1: #d55e00; --s2: #00855f; --s3: #b4538a; --s4: #b27a00; --s5: #6b4fc4; --s6: #4a90b8; --s7: #5f6670;
  --p0: #0072b2; --p1: #e08214; --p2: #a9b1bc;
  --load0: #c3d3e2; --load1: #93b6d5; --load2: #5b95c2; --load3: #2c6da6; --load4: #0c4478;
  color-scheme: light;
}
)css";

constexpr const char* kDark = R"css({
    --paper: #12161c; --raised: #1b2129; --ink: #e6eaf0; --quiet: #9aa5b4; --rule: #333c48; --grid: #262e38; --accent: #7db8f2;
    --bad: #ff9c91; --warn: #33291a; --hot: #ff8f70; --on-dot: #12161c;
    --s0: #5cb3e8; --s1: #ff8a4c; --s2: #2fc496; --s3: #e79cc6; --s4: #e8b33a; --s5: #b3a1ff; --s6: #a8dcf0; --s7: #b6bec9;
    --p0: #4ba3dc; --p1: #f0a04b; --p2: #667080;
    --load0: #33475c; --load1: #3d6c96; --load2: #5194ca; --load3: #84bce8; --load4: #c8e4fb;
    color-scheme: dark;
  }
)css";

constexpr const char* kRules = R"css(* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
main, footer { max-width: 1180px; margin: 0 auto; padding: 0 28px; }
header { padding: 40px 0 4px; }
.kicker { margin: 0; color: var(--accent); font-size: 13px; font-weight: 600; letter-spacing: .04em; }
h1 { margin: 4px 0 14px; font-size: 27px; line-height: 1.25; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { margin: 0 0 14px; padding-top: 26px; font-size: 20px; border-top: 1px solid var(--rule); }
h3 { margin: 26px 0 6px; font-size: 16px; overflow-wrap: anywhere; }
section { margin-top: 34px; }
.conclusion { max-width: 62em; margin: 0 0 12px; padding: 14px 18px; background: var(--raised); border-left: 4px solid var(--accent); border-radius: 0 6px 6px 0; font-size: 17px; }
.note, .missing { margin: 8px 0; color: var(--quiet); font-size: 13.5px; max-width: 72em; overflow-wrap: anywhere; }
.missing { padding: 12px 16px; border: 1px dashed var(--rule); border-radius: 6px; }
.warning { margin: 8px 0; padding: 8px 14px; background: var(--warn); border-radius: 6px; font-size: 14px; overflow-wrap: anywhere; }
.bad { color: var(--bad); font-weight: 600; }
.quiet { color: var(--quiet); }
.apart { margin: 4px 0 10px; font-size: 14px; }
dl.facts { display: flex; flex-wrap: wrap; gap: 6px 34px; margin: 16px 0 10px; font-size: 14px; }
dl.facts dt { color: var(--quiet); font-size: 12.5px; }
dl.facts dd { margin: 0; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: 6px 18px; padding: 10px 0 0; font-size: 14px; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; margin: 10px 0; }
th, td { padding: 6px 12px; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top; }
th:first-child, td:first-child { padding-left: 0; }
thead th { color: var(--quiet); font-weight: 500; font-size: 12.5px; vertical-align: bottom; line-height: 1.35; }
tbody th { font-weight: 600; overflow-wrap: break-word; }
.name-short { white-space: nowrap; }
figure tbody th { min-width: 17em; }
.n { text-align: right; white-space: nowrap; }
thead .n { white-space: normal; }
table small { display: block; color: var(--quiet); font-size: 12px; font-weight: 400; }
figure table small { display: inline; }
.summary { width: 100%; }
.summary .swatch { margin-right: 6px; }
tr.member th, tr.member td { border-bottom-style: dotted; color: var(--quiet); font-weight: 400; padding-top: 3px; padding-bottom: 3px; }
tr.member th { padding-left: 38px; white-space: nowrap; }
.scroll { overflow-x: auto; }
pre { margin: 8px 0; padding: 10px 14px; background: var(--raised); border-radius: 6px; font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
pre span { display: inline-block; max-width: 100%; }
details { margin: 6px 0; font-size: 14px; }
summary { cursor: pointer; color: var(--accent); }
dl.settings { columns: 3 250px; column-gap: 30px; margin: 8px 0; font-size: 13px; }
dl.settings div { display: flex; gap: 10px; justify-content: space-between; break-inside: avoid; border-bottom: 1px solid var(--grid); padding: 2px 0; }
dl.settings dt { color: var(--quiet); }
dl.settings dd { margin: 0; text-align: right; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
article.run { margin-bottom: 22px; }
footer { padding-top: 26px; padding-bottom: 40px; color: var(--quiet); font-size: 13px; }
#theme { position: absolute; top: 14px; right: 18px; padding: 5px 12px; font: inherit; font-size: 13px; color: var(--quiet); background: var(--raised); border: 1px solid var(--rule); border-radius: 16px; cursor: pointer; }
#theme:hover { color: var(--ink); }
)css";

constexpr const char* kCharts =
    R"css(.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 500px), 1fr)); gap: 26px 36px; align-items: start; }
figure { margin: 0; position: relative; min-width: 0; }
#summary > figure { max-width: 590px; margin-top: 18px; }
.aside { padding-top: 26px; font-size: 14px; color: var(--quiet); max-width: 46em; }
.aside table { color: var(--ink); }
figure.wide { margin-bottom: 26px; }
figcaption { font-weight: 600; font-size: 14.5px; margin-bottom: 4px; overflow-wrap: anywhere; }
figure svg { display: block; width: 100%; height: auto; overflow: visible; }
figure svg.half { max-width: 590px; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; font-size: 13px; margin: 2px 0 6px; min-height: 20px; }
.legend span { display: inline-flex; align-items: center; gap: 6px; }
svg.swatch, .legend svg.swatch { display: inline-block; width: auto; flex: none; vertical-align: -1px; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; fill: var(--ink); font-variant-numeric: tabular-nums; }
.axis text { fill: var(--quiet); font-size: 11.5px; }
.axis text.name { fill: var(--ink); }
.grid { stroke: var(--grid); fill: none; }
.base, .tick { stroke: var(--quiet); fill: none; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.line.thin { stroke-width: 1.5; }
.d1 { stroke-dasharray: 8 4; } .d2 { stroke-dasharray: 3 3; } .d3 { stroke-dasharray: 10 4 2 4; }
.s0 { stroke: var(--s0); } .s1 { stroke: var(--s1); } .s2 { stroke: var(--s2); } .s3 { stroke: var(--s3); }
.s4 { stroke: var(--s4); } .s5 { stroke: var(--s5); } .s6 { stroke: var(--s6); } .s7 { stroke: var(--s7); }
.f0 { fill: var(--s0); } .f1 { fill: var(--s1); } .f2 { fill: var(--s2); } .f3 { fill: var(--s3); }
.f4 { fill: var(--s4); } .f5 { fill: var(--s5); } .f6 { fill: var(--s6); } .f7 { fill: var(--s7); }
.marker { stroke: var(--paper); stroke-width: .8; }
.band { opacity: .16; }
path.level { stroke: var(--quiet); stroke-dasharray: 1 3; stroke-width: 1.5; fill: none; }
text.level { fill: var(--quiet); font-size: 11.5px; paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
path.mark { stroke: var(--hot); stroke-width: 1.3; stroke-dasharray: 4 3; fill: none; }
text.mark { fill: var(--hot); font-size: 11px; paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
.p0 { fill: var(--p0); } .p1 { fill: var(--p1); } .p2 { fill: var(--p2); }
text.label { font-size: 12.5px; }
text.total { font-size: 12px; font-weight: 600; }
text.total.quiet { font-weight: 400; fill: var(--quiet); font-size: 11px; }
.planned { fill: var(--grid); stroke: var(--quiet); stroke-width: 1; }
.carried { fill: var(--s0); }
.whisker { stroke: var(--ink); stroke-width: 1.5; fill: none; }
.switch { fill: var(--raised); stroke: var(--quiet); }
.host { fill: var(--paper); stroke: var(--quiet); }
text.node { font-size: 11.5px; }
text.speed { font-size: 11px; fill: var(--quiet); }
text.hot, .legend .hot { fill: var(--hot); color: var(--hot); font-weight: 600; }
.bus { stroke: var(--rule); stroke-width: 1.5; fill: none; }
.cable { fill: none; }
.unknown { stroke: var(--quiet); }
.load0 { stroke: var(--load0); } .load1 { stroke: var(--load1); } .load2 { stroke: var(--load2); } .load3 { stroke: var(--load3); } .load4 { stroke: var(--load4); }
.cable.hot { stroke: var(--hot); }
.rounds { display: flex; flex-wrap: wrap; gap: 16px 22px; margin: 12px 0; }
figure.round { padding: 10px 12px; border: 1px solid var(--rule); border-radius: 8px; max-width: 100%; }
figure.round figcaption { font-weight: 400; font-size: 12.5px; line-height: 1.35; max-width: 24em; color: var(--quiet); }
figure.round figcaption b { color: var(--ink); }
figure.round svg { width: auto; max-width: 100%; margin-top: 6px; }
.dot { stroke-width: 1.3; stroke: none; }
.dot.alone, .dot.mixed { fill: none; stroke: var(--quiet); }
.dot.mixed { stroke-dasharray: 2 2; }
text.dot { font-size: 9.5px; font-weight: 600; fill: var(--quiet); }
text.dot.in { fill: var(--on-dot); }
.g0 { fill: var(--s0); } .g1 { fill: var(--s1); } .g2 { fill: var(--s2); } .g3 { fill: var(--s3); }
.g4 { fill: var(--s4); } .g5 { fill: var(--s5); } .g6 { fill: var(--s6); } .g7 { fill: var(--s7); }
.cursor { stroke: var(--quiet); stroke-width: 1; pointer-events: none; }
.readout { position: absolute; z-index: 2; padding: 7px 11px; background: var(--paper); border: 1px solid var(--rule); border-radius: 6px; box-shadow: 0 3px 14px rgb(0 0 0 / .18); font-size: 12.5px; line-height: 1.5; white-space: nowrap; pointer-events: none; font-variant-numeric: tabular-nums; }
.readout b { display: block; }
.readout div { display: flex; justify-content: space-between; gap: 16px; }
)css";

constexpr const char* kPrint = R"css(@page { margin: 14mm 13mm; }
@media print {
  body { font-size: 10.5pt; }
  main, footer { max-width: none; padding: 0; }
  header { padding-top: 0; }
  nav, #theme, .readout, summary::marker { display: none; }
  summary { list-style: none; }
  dl.settings { columns: 3; font-size: 8pt; }
  section { margin-top: 18px; }
  h2 { padding-top: 14px; }
  h2, h3, figcaption, .legend { break-after: avoid; }
  figure, tr, article.run > pre, .conclusion { break-inside: avoid; }
  .charts { display: block; }
  .charts > figure { max-width: 165mm; margin-bottom: 16px; }
  .scroll { overflow: visible; }
  table { font-size: 8.5pt; }
  th, td { padding: 4px 6px; }
  thead th, table small { font-size: 7.5pt; }
  .swatch, .part, .dot, .cable { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .summary .swatch { width: 20px; }
  figure tbody th { min-width: 11em; }
  tr.member th { padding-left: 22px; }
  table { break-inside: avoid; }
  .conclusion { font-size: 12pt; }
}
)css";

}  // namespace

std::string page_style() {
  // The dark colours are for screens alone: paper stays white.
  return std::string(kColors) + "@media screen {\n  :root[data-theme=\"dark\"] " + kDark +
         "  @media (prefers-color-scheme: dark) { :root:not([data-theme=\"light\"]) " + kDark + "  }\n}\n" + kRules +
         kCharts + kPrint;
}

}  // namespace dssync
