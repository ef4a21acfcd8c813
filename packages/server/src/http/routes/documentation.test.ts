import { readFileSync, writeFileSync } from 'node:fs'
import { Script } from 'node:vm'
import { afterAll, describe, expect, test } from 'vitest'
import { Metrics } from '../../observe/metrics.ts'
import { TestServer } from '../../testing/running-server.ts'
import { explorerScript } from './documentation.ts'
import { TestApi } from '../testing/test-api.ts'
import { ToolHosts } from '../../tool-hosts/tool-hosts.ts'
import { editorRoute, hostRoute, wsRoute } from '../../ws/ws-door.ts'

const api = new TestApi()
afterAll(() => api.close())

interface Document {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, unknown> }
}

interface Operation {
  'x-access'?: string
  operationId?: string
  requestBody?: Body
  responses: Record<string, Body>
  parameters?: unknown[]
}

interface Body {
  content?: Record<string, { schema?: { $ref?: string } }>
}

/** Tables without alignment. */
function plain(markdown: string): string {
  return markdown.replaceAll(/ *\| */g, '|').replaceAll(/-{3,}/g, '---')
}

describe('the OpenAPI document', () => {
  test('has every declared route with its role, its schemas and its problems', async () => {
    const document = (await (await api.get('/api/openapi.json')).json()) as Document
    expect(document.openapi).toBe('3.1.0')
    const told = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { 'x-access': access, responses }]) => {
        expect(responses).toHaveProperty('default.content.application/problem+json.schema')
        return `${method} ${path} ${access}`
      }),
    )
    expect(told.sort()).toEqual(
      api.routes.declared.map(({ method, path, access }) => `${method} ${path} ${access}`).sort(),
    )
    expect(document.components.schemas).toHaveProperty('CreateSession.properties.cwd')
    expect(document.paths['/api/health']?.['get']).toMatchObject({ security: [] })
  })

  test('gives every operation its own id, and every body a named schema', async () => {
    const document = (await (await api.get('/api/openapi.json')).json()) as Document
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
    const ids = operations.map(({ operationId }) => operationId)
    expect(ids.filter((id) => !/^[a-z][A-Za-z]+$/.test(id ?? ''))).toEqual([])
    expect(new Set(ids).size).toBe(ids.length)
    const bodies = operations.flatMap(({ operationId, requestBody, responses }) =>
      [requestBody, ...Object.values(responses)].flatMap((body) =>
        Object.entries(body?.content ?? {}).map(([type, { schema }]) => ({ operationId, type, schema })),
      ),
    )
    const inline = bodies.filter(({ type, schema }) => /[/+]json$/.test(type) && schema?.$ref === undefined)
    expect(inline).toEqual([])
    for (const { schema } of bodies) {
      const name = schema?.$ref?.replace('#/components/schemas/', '')
      if (name !== undefined) expect(document.components.schemas).toHaveProperty(name)
    }
    expect(document.components.schemas).toHaveProperty(
      'SessionPage.properties.sessions.items.$ref',
      '#/components/schemas/SessionInfo',
    )
  })

  test('names the cookie that this server sets for this caller', async () => {
    const cookieAt = async (url: string): Promise<unknown> => {
      const response = await api.routes.app.request(url)
      const document = (await response.json()) as { components: { securitySchemes: { cookie: { name: string } } } }
      return document.components.securitySchemes.cookie.name
    }
    expect(await cookieAt('http://localhost:4711/api/openapi.json')).toBe('tapetree-4711')
    expect(await cookieAt('https://tape.example/api/openapi.json')).toBe('__Host-tapetree')
  })

  test('has a page to try it that loads nothing from elsewhere', async () => {
    const page = await api.get('/api/docs')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    const html = await page.text()
    expect(html).not.toMatch(/https?:|<script>|style="|onclick/)
    const script = await api.get('/api/docs.js')
    expect(script.headers.get('content-type')).toContain('text/javascript')
    // It parses, and cannot turn server text into markup.
    expect(() => new Script(explorerScript)).not.toThrow()
    expect(explorerScript).not.toMatch(/innerHTML|insertAdjacentHTML|document\.write|eval\(/)
    expect((await api.get('/api/docs.css')).status).toBe(200)
  })
})

test('the reference page lists every route of a server; UPDATE_REST_PAGE=1 writes the table again', async () => {
  const server = await TestServer.start(() => ({
    metrics: new Metrics(new Map()),
    toolHosts: new ToolHosts(),
    editors: async () => undefined,
  }))
  const { declared } = server.server
  await server.close()
  const isCommon = ({ path }: { path: string }): boolean => api.routes.declared.some((route) => route.path === path)
  const table = tableOf([...declared.filter(isCommon), ...declared.filter((route) => !isCommon(route))])
  const url = new URL('../../../../../docs/reference/rest.md', import.meta.url)
  const before = readFileSync(url, 'utf8')
  const start = before.search(/^\| method +\|/m)
  const end = before.indexOf('\n\n', start)
  if (process.env['UPDATE_REST_PAGE'] === '1') writeFileSync(url, before.slice(0, start) + table + before.slice(end))
  const page = readFileSync(url, 'utf8')
  const [, shown] = /\n(\| method \|[^]*?)\n\n/.exec(page.replaceAll(/ +\|/g, ' |')) ?? []
  expect(plain(shown ?? '')).toBe(plain(table))
})

const sockets: Record<string, string> = {
  [wsRoute.path]: 'Open the [WebSocket](websocket.md) of a session',
  [hostRoute.path]: 'Connect a tool host, if the server has the option `toolHosts`',
  [editorRoute.path]:
    'Connect an [editor](../guides/editors.md#editors-of-a-server), if the server has the option `editors`',
}

/** The table of routes in the reference. */
function tableOf(declared: TestServer['server']['declared']): string {
  const rows = declared.map(({ method, path, access, config }) => {
    const statuses = Object.keys(config?.responses ?? { 101: '' }).filter((status) => status !== 'default')
    const summary = config?.summary ?? sockets[path] ?? ''
    return `| ${method.toUpperCase()} | \`${path}\` | ${access} | ${summary} | ${statuses.join(', ')} |`
  })
  return ['| method | path | role | what it does | answers |', '|---|---|---|---|---|', ...rows].join('\n')
}
