/** How all hosted pages look; {@link accentStyle} has the colours that are the partner's. */
export const STYLE = `
:root{color-scheme:light dark;font:100%/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
--page:#eef1f6;--card:#fff;--ink:#161b26;--soft:#525b6b;--line:#d5dae3;--edge:#79839a;--good:#0b6b3a;--good-bg:#e3f5ea;--bad:#a51d1d;--bad-bg:#fdeaea;--warn:#7a4b00;--warn-bg:#fdf2dc;--calm:#3a4356;--calm-bg:#e6e9f0;--shadow:0 1px 2px #1118270f,0 8px 24px #11182714}
@media (prefers-color-scheme:dark){:root{--page:#12151b;--card:#1a1e26;--ink:#eef1f6;--soft:#aeb7c6;--line:#323947;--edge:#8792a8;--good:#7fdca6;--good-bg:#12301f;--bad:#ffabab;--bad-bg:#3b1719;--warn:#f5c77e;--warn-bg:#33260c;--calm:#ccd3df;--calm-bg:#20242d;--shadow:0 1px 2px #0006}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);min-height:100vh;display:flex;flex-direction:column;overflow-wrap:anywhere}
h1,h2,p,dl,dd,table,fieldset,figure{margin:0;padding:0}
a{color:var(--accent-text);text-underline-offset:.15em}
:focus-visible{outline:3px solid var(--accent-text);outline-offset:2px}
[tabindex="-1"]:focus{outline:none}
.bar,main,footer{width:100%;max-width:66rem;margin:0 auto;padding:0 1.25rem}
.bar{display:flex;flex-wrap:wrap;align-items:center;gap:.75rem;padding-top:1.5rem;padding-bottom:1.25rem}
.brand{display:flex;align-items:center;gap:.75rem;font-weight:600;font-size:1.0625rem;min-width:0}
.brand img{display:block;max-width:12rem;max-height:2.75rem;object-fit:contain;border-radius:.375rem}
.mark{flex:none;width:2.25rem;height:2.25rem;border-radius:.625rem;display:grid;place-items:center;background:var(--accent);color:var(--on-accent)}
.tag{margin-left:auto;padding:.125rem .625rem;border-radius:1rem;background:var(--warn-bg);color:var(--warn);font-size:.8125rem;font-weight:600}
main{flex:1;display:grid;gap:1.5rem;align-content:start;padding-bottom:2.5rem}
main>*{min-width:0}
.card{background:var(--card);border:1px solid var(--line);border-radius:1rem;box-shadow:var(--shadow);padding:1.5rem}
.narrow :is(.bar,main,footer){max-width:38rem}
.narrow .card{padding:1.75rem 1.5rem}
.stack>*+*{margin-top:1rem}
.eyebrow,.soft{color:var(--soft)}
.soft{font-size:.9375rem}
.small{font-size:.875rem}
h1{font-size:1.5rem;font-weight:650;line-height:1.3;letter-spacing:-.01em}
h1.ask{font-size:1rem;font-weight:500;letter-spacing:0}
.amount{display:block;font-size:2.5rem;line-height:1.2;font-weight:650;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
h2{font-size:1.125rem;font-weight:650;line-height:1.35}
.text{white-space:pre-line}
table{width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding-bottom:.375rem}
th,td{text-align:left;font-weight:400;padding:.5rem 0;vertical-align:top;border-top:1px solid var(--line)}
th+th,th+td,td+td{padding-left:.75rem}
.num{text-align:right;white-space:nowrap}
thead th{color:var(--soft);font-size:.875rem;border-top:0;padding-top:0}
tfoot tr:first-child>*{font-weight:650}
dl{display:grid;grid-template-columns:minmax(7rem,auto) 1fr}
dl .row{display:contents}
dt,dd{padding:.5rem 0;border-top:1px solid var(--line)}
dt{color:var(--soft);padding-right:1rem}
dd{text-align:right}
.hide{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.state{display:grid;justify-items:center;text-align:center;gap:.5rem}
.sign{width:3.5rem;height:3.5rem;border-radius:50%;display:grid;place-items:center;margin-bottom:.25rem}
.sign svg{width:1.75rem;height:1.75rem}
svg{fill:none;stroke:currentColor;stroke-width:2;stroke-linecap:round;stroke-linejoin:round}
.good{background:var(--good-bg);color:var(--good)}
.bad{background:var(--bad-bg);color:var(--bad)}
.warn{background:var(--warn-bg);color:var(--warn)}
.calm{background:var(--calm-bg);color:var(--calm)}
.note{border-radius:.75rem;padding:.875rem 1rem}
.note strong{display:block}
.note ul{margin:.25rem 0 0;padding-left:1.25rem}
.note a{color:inherit}
.note+form{margin-top:1rem}
.pill{display:inline-block;border-radius:1rem;padding:0 .5rem;font-size:.8125rem;font-weight:600;white-space:nowrap}
.way{border:1px solid var(--edge);border-radius:.75rem;margin-top:.75rem;background:var(--card)}
.way[open]{border-color:var(--accent-text);box-shadow:0 0 0 1px var(--accent-text)}
.way>summary{display:flex;align-items:center;gap:.75rem;padding:.875rem 1rem;min-height:3.25rem;cursor:pointer;list-style:none;font-weight:600;border-radius:.75rem}
.way>summary::-webkit-details-marker{display:none}
.way>summary svg{flex:none;width:1.375rem;height:1.375rem;color:var(--soft)}
.way>summary small{display:block;font-weight:400;font-size:.875rem;color:var(--soft)}
.way>summary .turn{margin-left:auto}
.way[open]>summary .turn{transform:rotate(180deg)}
.way>div{padding:.25rem 1rem 1.125rem}
form{display:grid;gap:1rem}
label,legend{font-weight:600;font-size:.9375rem;padding:0}
legend{margin-bottom:.25rem}
label small{font-weight:400;color:var(--soft);font-size:.875rem}
fieldset{border:0;display:grid;gap:.5rem;min-width:0}
input:not([type=radio],[type=checkbox]){display:block;width:100%;margin-top:.25rem;padding:.625rem .75rem;min-height:2.75rem;font:inherit;color:var(--ink);background:var(--card);border:1px solid var(--edge);border-radius:.5rem}
input[aria-invalid]{border-color:var(--bad)!important;box-shadow:0 0 0 1px var(--bad)}
.fault{color:var(--bad);font-size:.875rem;margin-top:.25rem}
.hint{color:var(--soft);font-size:.875rem;margin-top:.25rem}
.pick{display:flex;align-items:flex-start;gap:.625rem;padding:.625rem .75rem;border:1px solid var(--edge);border-radius:.5rem;min-height:2.75rem;font-weight:400}
.pick input{flex:none;width:1.25rem;height:1.25rem;margin:.125rem 0 0;accent-color:var(--accent-text)}
.pair{display:grid;gap:.5rem 1rem;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr))}
button,.button{display:block;text-align:center;text-decoration:none;font:inherit;font-weight:650;min-height:3rem;padding:.625rem 1.25rem;border:1px solid var(--accent-text);border-radius:.625rem;background:var(--accent);color:var(--on-accent);cursor:pointer;width:100%}
button:hover,.button:hover{box-shadow:0 0 0 1px var(--accent-text)}
button[aria-disabled=true]{cursor:progress;opacity:.75}
details.more>summary{cursor:pointer;font-weight:600;padding:.25rem 0}
.safe{display:flex;gap:.5rem;align-items:flex-start;color:var(--soft);font-size:.875rem}
.safe svg{flex:none;width:1rem;height:1rem;margin-top:.2rem}
footer{color:var(--soft);font-size:.875rem;padding-bottom:1.75rem}
@media (min-width:56rem){.bar{padding-top:2.25rem}.two{grid-template-columns:minmax(0,1fr) minmax(0,1.05fr);column-gap:3.5rem}.two>.card{padding:2rem}.narrow .card{padding:2.25rem}.two .amount{font-size:3rem}}
@media (prefers-color-scheme:dark){.brand img{background:#fff;padding:.25rem}}
@media (max-width:30rem){.bar,main,footer{padding-left:1rem;padding-right:1rem}.card{padding:1.25rem 1rem}.ways .way>div{padding:.25rem .875rem 1rem}}
@media print{body{background:#fff}.card{box-shadow:none}.ways{display:none}}
`

/** @param light, dark see {@link palette}. */
export function accentStyle(light: Colours, dark: Colours): string {
  return `:root{${variables(light)}}@media (prefers-color-scheme:dark){:root{${variables(dark)}}}`
}

interface Colours {
  readonly accent: string
  readonly onAccent: string
  readonly accentText: string
}

function variables({ accent, onAccent, accentText }: Colours): string {
  return `--accent:${accent};--on-accent:${onAccent};--accent-text:${accentText}`
}
