/** Deeper values would overflow the stack of code that walks them. */
export const maxJsonDepth = 64

/** The nesting depth of brackets outside of strings. */
export function depthOf(json: string): number {
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
