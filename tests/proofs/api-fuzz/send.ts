import fc from 'fast-check'
import type { ZodType } from 'zod'
import type { DeclaredRoute } from '../../../packages/server/src/http/app.ts'
import { faultsOf } from '../../../packages/server/src/http/testing/checked-response.ts'
import type { TestApi } from '../../../packages/server/src/http/testing/test-api.ts'
import { arbitraryOf, brokenBodies, oddHeaders, type KnownIds } from './arbitrary.ts'

export interface Request {
  method: string
  url: string
  headers: Record<string, string>
  body?: string
}

/** Requests to one route: as its schemas want them, and otherwise. */
export function requestsTo({ method, path, config }: DeclaredRoute, known: KnownIds): fc.Arbitrary<Request> {
  const { params, query, body } = config.request ?? {}
  const [type, content] = Object.entries(body?.content ?? {})[0] ?? []
  const schema = (content as { schema?: ZodType } | undefined)?.schema
  return fc
    .record({
      params: params ? arbitraryOf(params as unknown as ZodType, known) : fc.constant({}),
      query: query ? arbitraryOf(query as unknown as ZodType, known) : fc.constant({}),
      headers: oddHeaders,
      body: bodyOf(schema, known, type),
      type: fc.oneof(
        { weight: 15, arbitrary: fc.constant(type) },
        fc.constantFrom('text/plain', 'multipart/form-data', 'application/json; charset=x'),
      ),
    })
    .map(({ params: given, query: asked, headers, body: text, type: contentType }) => ({
      method: method.toUpperCase(),
      url: urlOf(path, given, asked),
      headers: { ...headers, ...(contentType !== undefined && text !== undefined && { 'content-type': contentType }) },
      ...(text !== undefined && { body: text }),
    }))
}

/** Whether a route carries a request out once that is sent again with its key. */
export function isKeyed({ config }: DeclaredRoute): boolean {
  const { headers } = config.request ?? {}
  return headers !== undefined && 'shape' in headers && 'idempotency-key' in (headers.shape as object)
}

/** Who looks at the answers: counts their statuses, and knows the folder of the server that none of them may name. */
export interface AnswerCheck {
  count: (status: number) => void
  hidden: string
}

/** What is wrong with the answer; a stream is not waited for. */
export async function tryRequest(
  api: TestApi,
  route: DeclaredRoute,
  request: Request,
  { count, hidden }: AnswerCheck,
): Promise<string[]> {
  const { method, url, headers, body } = request
  const response = await api.routes.app.request(url, { method, headers, ...(body !== undefined && { body }) })
  const { status } = response
  count(status)
  const isFine = (status >= 200 && status < 300) || (status >= 400 && status < 500)
  if (response.headers.get('content-type') === 'text/event-stream') {
    await response.body?.cancel()
    return isFine ? [] : [`status ${status}`]
  }
  const faults = await faultsOf(route, response)
  const names = (await response.clone().text()).includes(hidden) && !JSON.stringify(request).includes(hidden)
  if (names) faults.push('the answer names a folder of the server')
  await response.body?.cancel()
  return isFine ? faults : [`status ${status}`, ...faults]
}

function bodyOf(
  schema: ZodType | undefined,
  known: KnownIds,
  type: string | undefined,
): fc.Arbitrary<string | undefined> {
  if (type === undefined) return fc.constant(undefined)
  if (!schema || !type.endsWith('json')) return brokenBodies
  const fitting = arbitraryOf(schema, known).map((value) => JSON.stringify(value))
  return fc.oneof({ weight: 10, arbitrary: fitting }, { weight: 1, arbitrary: brokenBodies })
}

function urlOf(path: string, params: unknown, query: unknown): string {
  const filled = path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => {
    const value = isObject(params) ? params[name] : params
    // An empty part of a path is another path.
    return encodeURIComponent(textOf(value)) || '%00'
  })
  if (!isObject(query)) return filled
  const asked = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) asked.append(name, textOf(value))
  return asked.size === 0 ? filled : `${filled}?${asked.toString()}`
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function textOf(value: unknown): string {
  return (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined')).toWellFormed()
}
