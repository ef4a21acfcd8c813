import { z } from 'zod'
import { cookieName } from '../../auth/credential.ts'
import type { Routes } from '../app.ts'
import { explorerPage, explorerScript, explorerStyle } from '../explorer.ts'
import { visitOf } from '../guard.ts'
import { openapiDocument } from '../openapi.ts'
import { json } from '../responses.ts'

const text = z.string()
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
      summary: 'Get the OpenAPI 3.1 document of this API',
      responses: {
        200: json(z.looseObject({ openapi: z.string() }), 'Generated from the schemas that validate requests.'),
      },
    },
    (context) => {
      const document = openapiDocument(routes, cookieName(visitOf(context).peer))
      return context.body(JSON.stringify(document), 200, { 'content-type': 'application/json' }) as never
    },
  )
  const pages = [
    { path: '/api/docs', type: 'text/html; charset=utf-8', body: explorerPage, summary: 'Open a page to try the API' },
    { path: '/api/docs.js', type: 'text/javascript; charset=utf-8', body: explorerScript, summary: 'Its script' },
    { path: '/api/docs.css', type: 'text/css; charset=utf-8', body: explorerStyle, summary: 'Its looks' },
  ]
  for (const { path, type, body, summary } of pages) {
    routes.add(
      'view',
      {
        method: 'get',
        path,
        summary,
        responses: { 200: { description: summary, content: { [type.split(';')[0] as string]: { schema: text } } } },
      },
      (context) => context.body(body, 200, { ...pageHeaders, 'content-type': type }) as never,
    )
  }
}
