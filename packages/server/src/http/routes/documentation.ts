import { zodToOpenAPIRegistry } from '@asteasolutions/zod-to-openapi'
import * as protocol from '@tapetree/client/protocol'
import { z } from 'zod'
import { cookieName } from '../../auth/credential.ts'
import { problemBody, type Routes } from '../app.ts'
import { visitOf } from '../guard.ts'
import { json } from '../responses.ts'

const text = z.string()
const openapiSchema = z.looseObject({ openapi: z.string() })
const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}

export function addDocumentation(routes: Routes): void {
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/openapi.json',
      operationId: 'getOpenapiDocument',
      summary: 'Get the OpenAPI 3.1 document of this API',
      responses: {
        200: json(openapiSchema, 'Generated from the schemas that validate requests.'),
      },
    },
    (context) => {
      const document = openapiDocument(routes, cookieName(visitOf(context).peer))
      return context.body(JSON.stringify(document), 200, { 'content-type': 'application/json' }) as never
    },
  )
  const pages = [
    {
      path: '/api/docs',
      operationId: 'openExplorer',
      type: 'text/html; charset=utf-8',
      body: explorerPage,
      summary: 'Open a page to try the API',
    },
    {
      path: '/api/docs.js',
      operationId: 'getExplorerScript',
      type: 'text/javascript; charset=utf-8',
      body: explorerScript,
      summary: 'Its script',
    },
    {
      path: '/api/docs.css',
      operationId: 'getExplorerStyle',
      type: 'text/css; charset=utf-8',
      body: explorerStyle,
      summary: 'Its looks',
    },
  ]
  for (const { path, operationId, type, body, summary } of pages) {
    routes.add(
      'view',
      {
        method: 'get',
        path,
        operationId,
        summary,
        responses: { 200: { description: summary, content: { [type.split(';')[0] as string]: { schema: text } } } },
      },
      (context) => context.body(body, 200, { ...pageHeaders, 'content-type': type }) as never,
    )
  }
}

type Document = ReturnType<Routes['app']['getOpenAPI31Document']>

/**
 * The OpenAPI document of all declared routes. `x-access` is the required role; the cookie name is that of the
 * caller.
 */
function openapiDocument(routes: Routes, cookie: string): Document {
  nameSchemas()
  const document = routes.app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'tapetree',
      version: '1',
      license: { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' },
      description:
        'Sessions over HTTP. Failures are problem documents (RFC 9457); a request with an `Idempotency-Key` takes effect once.',
    },
    // Relative to this document, so that it is right behind a proxy with a path too.
    servers: [{ url: '..' }],
    security: [{ bearer: [] }, { cookie: [] }],
  })
  for (const { method, path, access } of routes.declared) {
    const operation = document.paths?.[path]?.[method as 'get']
    if (!operation) continue
    // Tools that check responses do not count the default as one for client errors.
    operation.responses = { ...operation.responses, '4XX': operation.responses?.['default'] }
    Object.assign(operation, { 'x-access': access, ...(access === 'anyone' && { security: [] }) })
  }
  document.components = {
    ...document.components,
    securitySchemes: {
      bearer: { type: 'http', scheme: 'bearer' },
      cookie: { type: 'apiKey', in: 'cookie', name: cookie },
    },
  }
  return document
}

/** Names each schema of the protocol after its export: `sessionInfoSchema` is the component `SessionInfo`. */
function nameSchemas(): void {
  const named = { ...protocol, problemSchema: problemBody, openapiSchema }
  for (const [name, schema] of Object.entries(named)) {
    if (!(schema instanceof z.ZodType) || zodToOpenAPIRegistry.has(schema)) continue
    const refId = `${name.charAt(0).toUpperCase()}${name.slice(1).replace(/Schema$/, '')}`
    zodToOpenAPIRegistry.add(schema, { _internal: { refId } })
  }
}

/** The page that lets people try the API. It loads only the OpenAPI document. */
const explorerPage = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>tapetree API</title>
    <link rel="stylesheet" href="docs.css">
  </head>
  <body>
    <h1>tapetree API</h1>
    <p><a href="openapi.json">openapi.json</a></p>
    <label>Filter <input id="filter" type="search" autocomplete="off"></label>
    <main id="routes" aria-live="polite">Loading…</main>
    <script src="docs.js"></script>
  </body>
</html>
`

const explorerStyle = `:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
details { border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: .4rem 0; }
summary { cursor: pointer; }
code, pre, textarea, input { font-family: ui-monospace, monospace; font-size: .9em; }
summary b { display: inline-block; min-width: 4.5rem; text-transform: uppercase; }
form label { display: block; margin: .4rem 0; }
form input, form textarea { width: 100%; box-sizing: border-box; }
textarea { min-height: 6rem; }
pre { overflow: auto; max-height: 30rem; padding: .5rem; background: color-mix(in srgb, currentColor 8%, transparent); }
small { opacity: .7; }
`

/** Server text is inserted as text, never as markup. */
export const explorerScript = `'use strict'
const main = document.getElementById('routes')

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}

function resolve(schema, api) {
  const name = schema && schema.$ref && schema.$ref.split('/').pop()
  return name ? api.components.schemas[name] : schema
}

function sample(schema, api) {
  const known = resolve(schema, api) || {}
  if (known.properties) {
    const required = new Set(known.required || [])
    return Object.fromEntries(
      Object.entries(known.properties).filter(([name]) => required.has(name)).map(([name, inner]) => [name, sample(inner, api)]),
    )
  }
  if (known.enum) return known.enum[0]
  if (known.type === 'array') return []
  if (known.type === 'boolean') return false
  return known.type === 'number' || known.type === 'integer' ? 0 : ''
}

function field(label, control) {
  return element('label', {}, label, control)
}

function routeForm(method, path, operation, api) {
  const parameters = (operation.parameters || []).map((each) => ({
    ...each,
    control: element('input', { name: each.name, required: Boolean(each.required), autocomplete: 'off' }),
  }))
  const content = operation.requestBody && operation.requestBody.content['application/json']
  const body = content && element('textarea', { value: JSON.stringify(sample(content.schema, api), null, 2) })
  const file = operation.requestBody && !content && element('input', { type: 'file' })
  const answer = element('pre', { hidden: true })
  const form = element(
    'form',
    {},
    element('p', {}, element('small', {}, 'needs: ' + operation['x-access'])),
    ...parameters.map(({ name, in: place, control }) => field(name + ' (' + place + ')', control)),
    ...(body ? [field('body', body)] : []),
    ...(file ? [field('file', file)] : []),
    element('button', {}, 'Send'),
    answer,
  )
  let open
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (open) open.abort()
    open = new AbortController()
    answer.hidden = false
    answer.textContent = '…'
    try {
      await send({ method, path, parameters, body, file, answer, signal: open.signal })
    } catch (error) {
      answer.textContent += '\\n' + error
    }
  })
  return form
}

async function send({ method, path, parameters, body, file, answer, signal }) {
  // Below the prefix of a proxy, if there is one.
  let url = location.pathname.replace(/\\/api\\/docs$/, '') + path
  const query = new URLSearchParams()
  const headers = {}
  for (const { name, in: place, control } of parameters) {
    if (place === 'path') url = url.replace('{' + name + '}', encodeURIComponent(control.value))
    else if (control.value !== '' && place === 'query') query.set(name, control.value)
    else if (control.value !== '' && place === 'header') headers[name] = control.value
  }
  if (body) headers['content-type'] = 'application/json'
  const chosen = file && file.files[0]
  if (chosen) headers['content-type'] = 'application/octet-stream'
  const asked = String(query) === '' ? url : url + '?' + query
  const response = await fetch(asked, {
    method: method.toUpperCase(),
    headers,
    body: body ? body.value : chosen || undefined,
    signal,
  })
  const lines = [...response.headers].map(([name, value]) => name + ': ' + value)
  answer.textContent = response.status + ' ' + response.statusText + '\\n' + lines.join('\\n') + '\\n\\n'
  if (!response.body) return
  const type = response.headers.get('content-type') || ''
  if (type.includes('json') && !type.includes('ndjson')) {
    answer.textContent += JSON.stringify(await response.json(), null, 2)
    return
  }
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    answer.textContent = (answer.textContent + part).slice(-100000)
  }
}

async function show() {
  const api = await (await fetch('openapi.json')).json()
  main.textContent = ''
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const title = element('summary', {}, element('b', {}, method), element('code', {}, path), ' ' + (operation.summary || ''))
      const details = element('details', {}, title)
      details.addEventListener('toggle', () => {
        if (details.open && details.children.length === 1) details.append(routeForm(method, path, operation, api))
      })
      main.append(details)
    }
  }
}

document.getElementById('filter').addEventListener('input', (event) => {
  const words = event.target.value.toLowerCase()
  for (const route of main.children) route.hidden = !route.textContent.toLowerCase().includes(words)
})

show().catch((error) => {
  main.textContent = 'Could not load the OpenAPI document:' + error
})
`
