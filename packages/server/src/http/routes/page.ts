import type { Context } from 'hono'
import { z } from 'zod'
import { RequestProblem } from '../../util/problem-error.ts'
import type { Routes } from '../app.ts'
import { pageScript } from './page-script.ts'
import type { WebApp, WebAppFile } from './web-app.ts'

/**
 * Only our own files, no framing, and no way to turn text into markup or code. The one policy of trusted types makes the URL of the
 * service worker, which is a constant.
 */
const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types service-worker",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}

/**
 * The web app or, in a clone that has not built it, a page that only pairs a browser and lists the sessions. Anyone may
 * load it: it shows nothing without a cookie.
 */
export function addPage(routes: Routes, app: WebApp | undefined): void {
  for (const { path, operationId, type, body, summary } of files()) {
    routes.add(
      'anyone',
      {
        method: 'get',
        path,
        operationId,
        summary,
        responses: { 200: { description: summary, content: { [type]: { schema: z.string() } } } },
      },
      async (context) => {
        const index = path === '/' ? await app?.file('index.html') : undefined
        if (index) return answerWith(context, index, 'no-cache')
        return context.body(body, 200, { ...headers, 'content-type': `${type}; charset=utf-8` })
      },
    )
  }
  for (const [name, operationId, summary] of rootFiles)
    addAppFile(routes, {
      path: `/${name}`,
      operationId,
      summary,
      cache: 'no-cache',
      find: () => app?.file(name),
    })
  addAppFile(routes, {
    path: '/assets/{name}',
    operationId: 'getAppAsset',
    summary: 'A script or style sheet of the web app',
    // The name of an asset changes with its content.
    cache: 'public, max-age=31536000, immutable',
    find: (name) => app?.file(`assets/${name}`),
  })
}

/** Files with a fixed name: browsers look for a new version of them by themselves. */
const rootFiles = [
  ['icon.svg', 'getAppIcon', 'The icon of the web app'],
  ['icon-192.png', 'getSmallAppIcon', 'The icon of the web app with 192 pixels'],
  ['icon-512.png', 'getLargeAppIcon', 'The icon of the web app with 512 pixels'],
  ['icon-maskable-512.png', 'getMaskableAppIcon', 'The icon of the web app for systems that cut it'],
  ['app.webmanifest', 'getAppManifest', 'The manifest by which browsers install the web app'],
  ['sw.js', 'getAppWorker', 'The service worker of the web app, for push messages'],
] as const

interface AppFileRoute {
  path: string
  operationId: string
  summary: string
  cache: string
  find: (name: string) => Promise<WebAppFile | undefined> | undefined
}

function addAppFile(routes: Routes, { path, operationId, summary, cache, find }: AppFileRoute): void {
  const hasName = path.includes('{name}')
  routes.add(
    'anyone',
    {
      method: 'get',
      path,
      operationId,
      summary,
      ...(hasName && { request: { params: z.object({ name: z.string().max(200) }) } }),
      responses: { 200: { description: 'The file.' } },
    },
    async (context) => {
      const file = await find(context.req.param('name') ?? '')
      if (!file) throw new RequestProblem(404, 'not-found', 'There is nothing at this path.')
      return answerWith(context, file, cache)
    },
  )
}

function answerWith(context: Context, { body, gzipped, type }: WebAppFile, cache: string): Response {
  const isGzipped = gzipped !== undefined && /\bgzip\b/.test(context.req.header('accept-encoding') ?? '')
  return context.body(isGzipped ? gzipped : body, 200, {
    ...headers,
    'content-type': type,
    'cache-control': cache,
    vary: 'accept-encoding',
    ...(isGzipped && { 'content-encoding': 'gzip' }),
  })
}

function files(): { path: string; operationId: string; type: string; body: string; summary: string }[] {
  return [
    {
      path: '/',
      operationId: 'getPage',
      type: 'text/html',
      body: page,
      summary: 'Open the page that pairs a browser and lists sessions',
    },
    {
      path: '/page.js',
      operationId: 'getPageScript',
      type: 'text/javascript',
      body: pageScript,
      summary: 'The script of the page',
    },
    {
      path: '/page.css',
      operationId: 'getPageStyles',
      type: 'text/css',
      body: style,
      summary: 'The styles of the page',
    },
    {
      path: '/page.svg',
      operationId: 'getPageIcon',
      type: 'image/svg+xml',
      body: icon,
      summary: 'The icon of the page',
    },
  ]
}

/** All URLs are relative, so that it works below any path. */
const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>tapetree</title>
    <link rel="icon" type="image/svg+xml" href="page.svg">
    <link rel="stylesheet" href="page.css">
    <script src="page.js" defer></script>
  </head>
  <body>
    <header>
      <h1><img src="page.svg" alt="" width="28" height="28"> tapetree</h1>
      <p id="connection" role="status"></p>
    </header>
    <main>
      <noscript><p>This page needs JavaScript. Without it, use <code>tapetree attach</code> in a terminal.</p></noscript>
      <p id="notice" role="alert" hidden></p>

      <section id="pair" aria-labelledby="pair-title" hidden>
        <h2 id="pair-title" tabindex="-1">Pair this device</h2>
        <form id="code-form">
          <p id="code-help">
            The computer that runs <code>tapetree serve</code> shows a link, a QR code and a pairing code. Open the link on
            this device, or type the code here. It works once, for five minutes. For a new one, press Enter in that
            terminal.
          </p>
          <label for="code">Pairing code</label>
          <input id="code" required maxlength="200" autocomplete="off" autocapitalize="characters" spellcheck="false"
            placeholder="XXXX-XXXX-XXXX-XXXX" aria-describedby="code-help">
          <button>Continue</button>
        </form>
        <form id="grant-form" hidden>
          <p id="replaces" hidden></p>
          <fieldset>
            <legend>What may this device do?</legend>
            <div id="roles"></div>
          </fieldset>
          <label for="device">Name of this device</label>
          <input id="device" required maxlength="100" autocomplete="off">
          <div class="buttons">
            <button>Pair this device</button>
            <button type="button" id="cancel" class="quiet">Cancel</button>
          </div>
        </form>
      </section>

      <section id="list" aria-labelledby="list-title" hidden>
        <h2 id="list-title" tabindex="-1">Sessions</h2>
        <p id="role"></p>
        <ul id="sessions"></ul>
        <p id="empty" hidden>
          There are no sessions yet. Start one with <code>tapetree</code> in a folder that this server serves. It appears
          here.
        </p>
        <button type="button" id="more" class="quiet" hidden>Show older sessions</button>
        <p>To open a session in a terminal: <code id="attach"></code></p>
        <div class="buttons">
          <button type="button" id="sign-out" class="quiet">Sign out</button>
          <a href="api/docs">API explorer</a>
        </div>
      </section>
    </main>
  </body>
</html>
`

const style = `:root {
  color-scheme: light dark;
  --page: #fbfbfa; --card: #fff; --text: #1d1d1f; --faint: #5c5c63; --line: #d9d9de; --field: #85858c;
  --accent: #1f5fbf; --on-accent: #fff; --running: #1f5fbf; --asks: #8a4b00; --asks-page: #fff3e0; --failed: #b3261e;
  --failed-page: #fdecea;
  font: 1rem/1.5 system-ui, sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #17171a; --card: #212126; --text: #ececf0; --faint: #adadb6; --line: #3a3a42; --field: #8a8a94;
    --accent: #8ab4f8; --on-accent: #10213d; --running: #8ab4f8; --asks: #ffb95c; --asks-page: #3a2a10;
    --failed: #ff9c94; --failed-page: #421c19;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { max-width: 44rem; margin: 0 auto; padding: 1rem; background: var(--page); color: var(--text); overflow-wrap: anywhere; }
header { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0 1rem; }
h1 { display: flex; align-items: center; gap: .5rem; font-size: 1.25rem; margin: .25rem 0; }
h2 { font-size: 1.5rem; line-height: 1.2; margin: 1.25rem 0 .5rem; }
p { margin: .5rem 0 1rem; }
header p { margin: 0; }
header p, #role, small { color: var(--faint); }
code { font-family: ui-monospace, monospace; font-size: .9em; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
h2:focus { outline: none; }
label, legend { font-weight: 600; }
label { display: block; }
fieldset { border: 0; margin: 0 0 1rem; padding: 0; }
legend { padding: 0; }
fieldset label { display: grid; grid-template-columns: auto 1fr; gap: 0 .75rem; padding: .75rem; margin: .5rem 0;
  border: 1px solid var(--line); border-radius: .5rem; background: var(--card); cursor: pointer; }
fieldset label small { grid-column: 2; font-weight: 400; }
fieldset input { width: 1.25rem; height: 1.25rem; margin: .15rem 0 0; accent-color: var(--accent); }
input:not([type]) { display: block; width: 100%; margin: .25rem 0 1rem; padding: .6rem .75rem; font: inherit;
  color: inherit; background: var(--card); border: 1px solid var(--field); border-radius: .5rem; }
input::placeholder { color: var(--faint); opacity: 1; }
#code { font-family: ui-monospace, monospace; letter-spacing: .05em; text-transform: uppercase; }
#code::placeholder { letter-spacing: .05em; }
button { min-height: 2.75rem; padding: 0 1.25rem; font: inherit; font-weight: 600; cursor: pointer; border-radius: .5rem;
  border: 1px solid var(--accent); background: var(--accent); color: var(--on-accent); }
button.quiet { background: transparent; color: var(--accent); }
button:disabled { opacity: .6; cursor: progress; }
.buttons { display: flex; flex-wrap: wrap; align-items: center; gap: .75rem 1.25rem; margin: 1rem 0; }
.buttons a { display: inline-block; padding: .6rem 0; }
#notice { padding: .75rem 1rem; border-radius: .5rem; background: var(--failed-page); color: var(--failed); }
#sessions { list-style: none; margin: 0 0 1rem; padding: 0; }
#sessions li { display: grid; grid-template-columns: 1fr auto; gap: .1rem 1rem; padding: .75rem 1rem; margin: .5rem 0;
  border: 1px solid var(--line); border-radius: .5rem; background: var(--card); }
#sessions b { font-weight: 600; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
#sessions small { grid-column: 1 / -1; }
.status { align-self: start; white-space: nowrap; font-size: .9rem; font-weight: 600; color: var(--faint); }
.status::before { content: '○ '; }
.running { color: var(--running); } .running::before { content: '● '; }
.needs-you { color: var(--asks); background: var(--asks-page); border-radius: .35rem; padding: 0 .4rem; }
.needs-you::before { content: '! '; }
.failed { color: var(--failed); } .failed::before { content: '✕ '; }
@media (prefers-reduced-motion: no-preference) {
  .running::before { animation: pulse 1.6s ease-in-out infinite; }
  @keyframes pulse { 50% { opacity: .35; } }
}
`

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
  <rect width="32" height="32" rx="7" fill="#1f5fbf"/>
  <path d="M10 7v18M10 12h6a5 5 0 0 1 5 5v8" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/>
  <circle cx="10" cy="7" r="3" fill="#fff"/><circle cx="10" cy="25" r="3" fill="#fff"/><circle cx="21" cy="25" r="3" fill="#fff"/>
</svg>
`
