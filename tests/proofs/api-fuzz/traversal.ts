import { z, type ZodType } from 'zod'
import { readFileSync } from 'node:fs'
import type { DeclaredRoute } from '../../../packages/server/src/http/app.ts'
import type { TestApi } from '../../../packages/server/src/http/testing/test-api.ts'
import type { KnownIds } from './arbitrary.ts'
import type { Stage } from './stage.ts'

/** One place in one route that takes an id, a path or any other text. */
export interface Parameter {
  route: DeclaredRoute
  where: 'path' | 'query' | 'body'
  name: string
}

export function readTraversals({ canary, root, store, parent }: Stage): string[] {
  const file = new URL('../../corpus/traversal.txt', import.meta.url)
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) =>
      line
        .replaceAll('{CANARY}', canary)
        .replaceAll('{ROOT}', root)
        .replaceAll('{STORE}', store)
        .replaceAll('{PARENT}', parent),
    )
}

export function parametersOf(routes: readonly DeclaredRoute[]): Parameter[] {
  return routes.flatMap((route) => {
    const { params, query, body } = route.config.request ?? {}
    const schema = (body?.content['application/json'] as { schema?: ZodType } | undefined)?.schema
    return [
      ...namesIn(params as unknown as ZodType).map((name) => ({ route, where: 'path' as const, name })),
      ...namesIn(query as unknown as ZodType).map((name) => ({ route, where: 'query' as const, name })),
      ...namesIn(schema).map((name) => ({ route, where: 'body' as const, name })),
    ]
  })
}

/** Sends one text in one place, as it is and encoded. Gives the statuses and what came back. */
export async function trySmuggling(
  api: TestApi,
  { route, where, name }: Parameter,
  { text, known }: { text: string; known: KnownIds },
): Promise<{ status: number; body: string }[]> {
  const { method, path } = route
  const fill = (other: string): string => known[other]?.[0] ?? 'x'
  const urlWith = (value: string): string =>
    path.replaceAll(/\{([^}]+)\}/g, (_, each: string) => (where === 'path' && each === name ? value : fill(each)))
  const encoded = encodeURIComponent(text)
  const urls =
    where === 'path'
      ? [urlWith(text.replaceAll(/[?#]/g, '')), urlWith(encoded)]
      : [where === 'query' ? `${urlWith('')}?${name}=${encoded}` : urlWith('')]
  const answers: { status: number; body: string }[] = []
  for (const url of urls) {
    const hasBody = route.config.request?.body !== undefined
    const response = await api.routes.app.request(url, {
      method: method.toUpperCase(),
      ...(hasBody && {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(where === 'body' ? { ...leastOf(route, known), [name]: text } : leastOf(route, known)),
      }),
    })
    const isStream = response.headers.get('content-type') === 'text/event-stream'
    answers.push({ status: response.status, body: isStream ? '' : await response.text() })
    if (isStream) await response.body?.cancel()
  }
  return answers
}

function namesIn(schema: ZodType | undefined): string[] {
  if (!schema) return []
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return Object.entries(properties).flatMap(([name, inner]) =>
    typeof inner === 'object' && inner.type === 'string' && !inner.enum ? [name] : [],
  )
}

/** The least that a route takes beside what is tried. */
function leastOf({ path }: DeclaredRoute, known: KnownIds): Record<string, unknown> {
  if (path.endsWith('/sessions')) return { cwd: known['path']?.[0] }
  if (path.endsWith('/prompt')) return { text: 'hi' }
  return path.endsWith('/queue') ? { message: 'hi' } : {}
}
