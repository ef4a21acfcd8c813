import type { Routes } from './app.ts'

/** What the router would serve and nobody has said for whom; `*` is what stands before all routes. */
export function undeclaredRoutes({ app, declared }: Pick<Routes, 'app' | 'declared'>): string[] {
  const known = new Set(declared.map(({ method, path }) => `${method.toUpperCase()} ${path}`))
  const served = app.routes
    .filter(({ method, path }) => !(method === 'ALL' && path === '/*'))
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)(\{[^}]*\})?/g, '{$1}')}`)
  return [...new Set(served)].filter((route) => !known.has(route))
}
