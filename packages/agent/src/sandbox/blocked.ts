import { resolve } from 'node:path'
import type { Blocked } from '../tools/commands/command.ts'
import { isSecretPath } from '../permissions/paths/secret-files.ts'

/** Where a message names what was blocked: the first group, if the message has one. */
interface Sign {
  kind: Blocked['kind']
  pattern: RegExp
}

const name = String.raw`['"\u2018\u2019\u0060]?([^\s'"\u2018\u2019\u0060:]+(?: [^\s'"\u2018\u2019\u0060:]+)*?)['"\u2018\u2019\u0060]?`
const host = String.raw`['"]?([A-Za-z0-9.-]+\.[A-Za-z0-9-]+|localhost)['"]?`

/** How programs say that the sandbox stopped them. No sandbox tells its programs why, so their messages are all there is. */
const signs: readonly Sign[] = [
  { kind: 'write', pattern: new RegExp(String.raw`\bEROFS: read-only file system, \w+ ${name}`, 'g') },
  { kind: 'write', pattern: new RegExp(String.raw`\[Errno 30\] Read-only file system: ${name}`, 'g') },
  { kind: 'write', pattern: new RegExp(String.raw`(?<![\w/'"])${name}: Read-only file system`, 'g') },
  { kind: 'write', pattern: /read-only file system/gi },
  {
    kind: 'network',
    pattern: new RegExp(
      String.raw`(?:Could not resolve host(?:name)?:?|getaddrinfo (?:EAI_AGAIN|ENOTFOUND)|unable to resolve host(?: address)?) ${host}`,
      'gi',
    ),
  },
  {
    kind: 'network',
    pattern: new RegExp(String.raw`${host}: (?:Name or service not known|Temporary failure in name resolution)`, 'gi'),
  },
  {
    kind: 'network',
    pattern: /Network is unreachable|\bENETUNREACH\b|Temporary failure in name resolution|Name or service not known/gi,
  },
  { kind: 'socket', pattern: /Cannot connect to the Docker daemon at (\S+?)\.?(?:\s|$)/g },
  { kind: 'socket', pattern: /connect (?:ENOENT|EACCES|ECONNREFUSED) (\/\S+)/g },
  { kind: 'hidden', pattern: new RegExp(String.raw`(?<![\w/'"])${name}(?: for reading)?: Permission denied`, 'g') },
  { kind: 'hidden', pattern: new RegExp(String.raw`\bEACCES: permission denied, \w+ ${name}`, 'g') },
  { kind: 'hidden', pattern: new RegExp(String.raw`\[Errno 13\] Permission denied: ${name}`, 'g') },
]

/** Longer output is not searched: errors come last. */
const searchedLength = 64 * 1024
const maxBlocked = 8

/** What the sandbox blocked, as far as the output of the command shows it. */
export function blockedIn(output: string, { cwd }: { cwd: string }): Blocked[] {
  const found = new Map<string, Blocked>()
  // Each place in the output counts once, by the first sign that fits.
  let rest = output.slice(-searchedLength)
  for (const { kind, pattern } of signs) {
    rest = rest.replace(pattern, (match, first?: string | number) => {
      const what = typeof first === 'string' ? first : ''
      if (kind === 'hidden' && !isSecretPath(resolve(cwd, what))) return match
      const key = `${kind} ${what}`
      const { count } = found.get(key) ?? { count: 0 }
      found.set(key, { kind, what, count: count + 1 })
      return ''
    })
  }
  return [...found.values()].slice(0, maxBlocked)
}
