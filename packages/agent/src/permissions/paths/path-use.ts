import { resolve } from 'node:path'
import { exactPath, meets, meetsBelow, type PathPattern } from './path-pattern.ts'
import { realPath } from './real-path.ts'

/** A path, or the paths that match a pattern, to be read or written. */
export interface PathUse {
  /** As written. */
  readonly written: PathPattern
  /** The target after resolving all links. */
  readonly real: PathPattern
  /** Display text. */
  readonly shown: string
  /** Includes everything below it. */
  readonly isRecursive: boolean
}

export function usePath(path: string): PathUse {
  return { written: exactPath(resolve(path)), real: exactPath(realPath(path)), shown: path, isRecursive: false }
}

/** Whether it may touch this path or something below it. */
export function mayTouch({ written, real }: PathUse, place: PathPattern): boolean {
  return meetsBelow(written, place) || meetsBelow(real, place)
}

/** Whether it may touch something below its own path that matches this pattern. */
export function mayReachInto({ written, real, isRecursive }: PathUse, place: PathPattern): boolean {
  return isRecursive && (meets([...written, '**'], [...place, '**']) || meets([...real, '**'], [...place, '**']))
}

/** Whether it certainly stays at or below this path. */
export function staysWithin({ real, isRecursive }: PathUse, place: PathPattern): boolean {
  return !isRecursive && isExact(real) && meetsBelow(real, place)
}

function isExact(pattern: PathPattern): boolean {
  return pattern.every(
    (component) => component !== '**' && component.tokens.every((token) => typeof token === 'string'),
  )
}
