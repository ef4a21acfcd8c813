import { resolve, sep } from 'node:path'

/** What a program that only reads does not do: the calls among these that start, connect or write, but for writes within a folder. */
export function actsIn(calls: readonly string[], { mayWriteIn }: { mayWriteIn?: string } = {}): string[] {
  return calls.filter((call) => {
    const [, name] = /^\d+ +(\w+)\(/.exec(call) ?? []
    if (name === undefined || isReading(name, call)) return false
    if (mayWriteIn === undefined || isNeverWriting(name)) return true
    const paths = pathsIn(call)
    return paths.length === 0 || paths.some((path) => !path.startsWith(mayWriteIn + sep))
  })
}

function isReading(name: string, call: string): boolean {
  if (!name.startsWith('open')) return false
  return !/O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)/.test(call) || call.includes('"/dev/null"')
}

function isNeverWriting(name: string): boolean {
  return /^(?:exec|connect|bind|send)/.test(name)
}

/** The paths that a call names, absolute: those in quotes, seen from the folder before them, or that of the file it is about. */
function pathsIn(call: string): string[] {
  const named = [...call.matchAll(/(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"/g)]
  if (named.length > 0) return named.map(([, folder = '/', path = '']) => resolve(folder, path))
  const [, open] = /\(\d+<([^>]*)>/.exec(call) ?? []
  return open === undefined ? [] : [resolve(open)]
}
