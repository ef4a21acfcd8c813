import type { RouteConfig } from '@hono/zod-openapi'
import { problemSchema } from '@tapetree/client/protocol'
import type { ZodType } from 'zod'
import type { DeclaredRoute } from '../app.ts'

/** The route of a request: literal parts take precedence over parameters. */
export function routeFor(
  routes: readonly DeclaredRoute[],
  { method, path }: { method: string; path: string },
): DeclaredRoute | undefined {
  const fitting = routes.filter((route) => route.method === method.toLowerCase() && patternOf(route.path).test(path))
  return fitting.toSorted((left, right) => countParameters(left.path) - countParameters(right.path))[0]
}

/** Differences between a response and its route's declaration, as sentences. The body of a stream is not read. */
export async function faultsOf(route: DeclaredRoute, response: Response): Promise<string[]> {
  const { status } = response
  const type = (response.headers.get('content-type') ?? '').split(';')[0] ?? ''
  const responses = route.config.responses as Record<string, RouteConfig['responses'][string] | undefined>
  const declared = responses[String(status)]
  const where = `${route.method} ${route.path} answered ${status}`
  if (!declared) {
    if (status < 400) return [`${where}, which it does not declare`]
    if (type !== 'application/problem+json') return [`${where} with ${type}, which is no problem document`]
    const problem = problemSchema.safeParse(await response.clone().json())
    return problem.success && problem.data.status === status ? [] : [`${where} with no proper problem document`]
  }
  const content = 'content' in declared ? declared.content : undefined
  if (!content) return response.body === null || (await response.clone().text()) === '' ? [] : [`${where} with a body`]
  const schemas = content as Record<string, { schema?: unknown } | undefined>
  const schema = schemas[type]?.schema
  if (schema === undefined) return type.startsWith('image/') ? [] : [`${where} with ${type}, which it does not declare`]
  if (type !== 'application/json') return []
  const parsed = (schema as ZodType).safeParse(await response.clone().json())
  return parsed.success ? [] : [`${where} with a body that does not fit: ${parsed.error.message}`]
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/[.]/g, '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')}$`)
}

function countParameters(path: string): number {
  return path.split('{').length
}
