import type { ZodType } from 'zod'
import { createHash } from 'node:crypto'
import { RequestProblem } from '../util/problem-error.ts'

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

/** Names a state: equal for equal values, and for nothing else. */
export function etagOf(state: unknown): string {
  const hash = createHash('sha256').update(JSON.stringify(state)).digest('base64url')
  return `"${hash.slice(0, 22)}"`
}

/** Whether a list of tags, as in `If-Match`, names this one. */
export function namesTag(header: string, etag: string): boolean {
  return header.split(',').some((each) => each.trim() === '*' || each.trim() === etag)
}

export function changedMeanwhile(etag: string): RequestProblem {
  return new RequestProblem(412, 'changed-meanwhile', 'It is not as it was when it was read.', { etag })
}
