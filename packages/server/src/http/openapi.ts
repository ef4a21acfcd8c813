import type { Routes } from './app.ts'

type Document = ReturnType<Routes['app']['getOpenAPI31Document']>

/**
 * The OpenAPI document of all declared routes. `x-access` is the required role; the cookie name is that of the
 * caller.
 */
export function openapiDocument(routes: Routes, cookie: string): Document {
  const document = routes.app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'tapetree',
      version: '1',
      description:
        'Sessions over HTTP. Failures are problem documents (RFC 9457); a request with an `Idempotency-Key` takes effect once.',
    },
    security: [{ bearer: [] }, { cookie: [] }],
  })
  for (const { method, path, access } of routes.declared) {
    const operation = document.paths?.[path]?.[method as 'get']
    if (!operation) continue
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
