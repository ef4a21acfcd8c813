import { exactText, meets, parsePathPattern, type PathPattern } from './path-pattern.ts'

/** A list of patterns that every path is compared with, ignoring case, since some file systems do. */
export class PlaceList {
  readonly #places: readonly PathPattern[]
  /** All patterns at once, for exact paths, which are the most common. */
  readonly #expression: RegExp

  constructor(globs: readonly string[]) {
    this.#places = globs.map((glob) => parsePathPattern(glob.toLowerCase()))
    this.#expression = new RegExp(`^(?:${globs.map(expressionOf).join('|')})$`, 'i')
  }

  /** Whether a pattern may match one of them. */
  has(pattern: PathPattern): boolean {
    const text = exactText(pattern)
    if (text !== undefined) return this.hasPath(text)
    const lower = lowerCase(pattern)
    return this.#places.some((place) => meets(lower, place))
  }

  hasPath(path: string): boolean {
    return this.#expression.test(path)
  }

  /** Whether one of them is this path or below it. */
  someBelow(pattern: PathPattern): boolean {
    const below: PathPattern = [...lowerCase(pattern), '**']
    return this.#places.some((place) => meets(below, place))
  }
}

function expressionOf(glob: string): string {
  const names = glob.split('/').filter((name) => name !== '')
  return names.map((name) => (name === '**' ? '(?:/[^/]*)*' : `/${name.split('*').map(escape).join('[^/]*')}`)).join('')
}

function escape(text: string): string {
  return text.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
}

function lowerCase(pattern: PathPattern): PathPattern {
  return pattern.map((component) =>
    component === '**'
      ? component
      : {
          ...component,
          tokens: component.tokens.map((token) => (typeof token === 'string' ? token.toLowerCase() : token)),
        },
  )
}
