import type { RouteConfig } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { ProblemError } from '../util/problem-error.ts'

/** The longest prompt has a million characters, each of which may take six bytes as JSON. */
const maxJsonBytes = 8 * 1024 * 1024
const maxImageBytes = 20 * 1024 * 1024
const maxJsonDepth = 64

/** Keeps a body from being larger or deeper than its route takes. Before anything is parsed. */
export function limitBody(config: RouteConfig): MiddlewareHandler[] {
  const types = Object.keys(config.request?.body?.content ?? {})
  if (types.length === 0) return []
  if (types.every((type) => type.endsWith('json'))) return [limitBytes(maxJsonBytes), limitDepth]
  return [limitBytes(maxImageBytes)]
}

function limitBytes(maxSize: number): MiddlewareHandler {
  return bodyLimit({
    maxSize,
    onError: () => {
      throw new ProblemError(413, 'too-large', `At most ${maxSize} bytes are taken here.`)
    },
  })
}

const limitDepth: MiddlewareHandler = async (context, next) => {
  if (depthOf(await context.req.text()) > maxJsonDepth) {
    throw new ProblemError(422, 'too-deep', `At most ${maxJsonDepth} levels are taken.`)
  }
  await next()
}

/** How deep the brackets of a text are nested, whatever lies in strings. */
function depthOf(json: string): number {
  let depth = 0
  let deepest = 0
  for (let index = 0; index < json.length; index++) {
    const code = json.charCodeAt(index)
    if (code === quote) index = endOfString(json, index)
    else if (code === openBrace || code === openBracket) deepest = Math.max(deepest, ++depth)
    else if (code === closeBrace || code === closeBracket) depth--
  }
  return deepest
}

const [quote, backslash, openBrace, closeBrace, openBracket, closeBracket] = [0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d]

function endOfString(json: string, start: number): number {
  let index = start + 1
  while (index < json.length && json.charCodeAt(index) !== quote) index += json.charCodeAt(index) === backslash ? 2 : 1
  return index
}
