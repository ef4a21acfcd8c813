import { exactText, meets, parsePathPattern, type PathPattern } from './path-pattern.ts'

/** Many places that every path is compared with, upper and lower case alike, since some disks do not tell them apart. */
export class PlaceList {
  readonly #places: readonly PathPattern[]
  /** All of them at once, for the paths that are certain, which is most of them. */
  readonly #expression: RegExp

  constructor(globs: readonly string[]) {
    this.#places = globs.map((glob) => parsePathPattern(glob.toLowerCase()))
    this.#expression = new RegExp(`^(?:${globs.map(expressionOf).join('|')})$`, 'i')
  }

  /** Whether a pattern may mean one of them. */
  has(pattern: PathPattern): boolean {
    const text = exactText(pattern)
    if (text !== undefined) return this.hasPath(text)
    const lower = lowerCase(pattern)
    return this.#places.some((place) => meets(lower, place))
  }

  hasPath(path: string): boolean {
    return this.#expression.test(path)
  }

  /** Whether one of them is below a path, or is that path. */
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
