import type { ZodType } from 'zod'
import { createHash } from 'node:crypto'
import { RequestProblem } from '../util/problem-error.ts'

/** Declares a JSON response. */
export function json<Schema extends ZodType>(schema: Schema, description: string): JsonResponse<Schema> {
  return { description, content: { 'application/json': { schema } } }
}

interface JsonResponse<Schema extends ZodType> {
  description: string
  content: { 'application/json': { schema: Schema } }
}

/** Declares a JSON request body. It is required; a route without one declares an empty schema. */
export function jsonBody<Schema extends ZodType>(schema: Schema): JsonBody<Schema> {
  return { required: true, content: { 'application/json': { schema } } }
}

interface JsonBody<Schema extends ZodType> {
  required: true
  content: { 'application/json': { schema: Schema } }
}

/** Equal for equal values only. */
export function etagOf(state: unknown): string {
  const hash = createHash('sha256').update(JSON.stringify(state)).digest('base64url')
  return `"${hash.slice(0, 22)}"`
}

/** Whether a list of tags, as in `If-Match`, contains this one. */
export function namesTag(header: string, etag: string): boolean {
  return header.split(',').some((each) => each.trim() === '*' || each.trim() === etag)
}

export function changedMeanwhile(etag: string): RequestProblem {
  return new RequestProblem(
    412,
    'changed-meanwhile',
    'The resource has changed since it was read. Read it again, then retry.',
    { etag },
  )
}
