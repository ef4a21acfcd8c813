import { resolve } from 'node:path'
import { exactPath, meets, meetsBelow, type PathPattern } from './path-pattern.ts'
import { realPath } from './real-path.ts'

/** A path, or the paths that a pattern means, that somebody wants to read or write. */
export interface PathUse {
  /** As it was said. */
  readonly written: PathPattern
  /** Where that leads now, through all links. */
  readonly real: PathPattern
  /** For a person. */
  readonly shown: string
  /** Everything below it, too. */
  readonly isRecursive: boolean
}

export function usePath(path: string): PathUse {
  return { written: exactPath(resolve(path)), real: exactPath(realPath(path)), shown: path, isRecursive: false }
}

/** Whether it may touch this place, or something below it. */
export function mayTouch({ written, real }: PathUse, place: PathPattern): boolean {
  return meetsBelow(written, place) || meetsBelow(real, place)
}

/** Whether it touches something below its own path that lies at this place. */
export function mayReachInto({ written, real, isRecursive }: PathUse, place: PathPattern): boolean {
  return isRecursive && (meets([...written, '**'], [...place, '**']) || meets([...real, '**'], [...place, '**']))
}

/** Whether it surely stays at this place and below it. */
export function staysWithin({ real, isRecursive }: PathUse, place: PathPattern): boolean {
  return !isRecursive && isExact(real) && meetsBelow(real, place)
}

function isExact(pattern: PathPattern): boolean {
  return pattern.every(
    (component) => component !== '**' && component.tokens.every((token) => typeof token === 'string'),
  )
}
