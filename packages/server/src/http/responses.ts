import type { ZodType } from 'zod'

/** The declaration of a body of JSON. */
export function json<Schema extends ZodType>(schema: Schema, description: string): JsonResponse<Schema> {
  return { description, content: { 'application/json': { schema } } }
}

interface JsonResponse<Schema extends ZodType> {
  description: string
  content: { 'application/json': { schema: Schema } }
}

/** The declaration of a request's body. It is required: a route that can do without says so by a schema of no members. */
export function jsonBody<Schema extends ZodType>(schema: Schema): JsonBody<Schema> {
  return { required: true, content: { 'application/json': { schema } } }
}

interface JsonBody<Schema extends ZodType> {
  required: true
  content: { 'application/json': { schema: Schema } }
}
