// What belongs to one machine or one person is not committed: workplace paths, package hosts, keys.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const leaks: { what: string; pattern: RegExp }[] = [
  { what: 'a path of one machine', pattern: /(?<![\w.)-])[/]work[/][\w.]/ },
  { what: 'a package host', pattern: /\bregistry[.]\w+[.](org|com|io)\b|\bdeb[.]debian[.]org\b/ },
  { what: 'a private key', pattern: /-----BEGIN [A-Z ]*PRIVATE[ ]KEY-----/ },
  { what: 'a token', pattern: /\b(?:npm_|ghp_|github_pat_)\w{30,}|\bsk-[a-z]+-[\w-]{30,}|\bAKIA[0-9A-Z]{16}\b/ },
]

function findLeaks(): string[] {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    encoding: 'utf8',
  })
  return files.split('\0').filter(Boolean).flatMap(findLeaksIn)
}

function findLeaksIn(file: string): string[] {
  let text: string
  try {
    text = readFileSync(file, 'latin1')
  } catch {
    return [] // deleted in the work tree, not yet in the index
  }
  return text
    .split('\n')
    .flatMap((line, index) =>
      leaks.filter(({ pattern }) => pattern.test(line)).map(({ what }) => `${file}:${index + 1}: ${what}`),
    )
}

const found = findLeaks()
for (const leak of found) console.error(leak)
console.log(`leaks: ${found.length} found`)
process.exitCode = found.length === 0 ? 0 : 1
