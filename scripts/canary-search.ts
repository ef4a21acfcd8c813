// Around every run of the tests: they get a folder for temporary files of their own, and when they are over no file that they left, there
// or in the work tree, may hold a canary.
import { readdirSync, readFileSync, rmSync, type Dirent } from 'node:fs'
import { chmod, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formsOf } from '../packages/redact/src/redaction-policy.ts'
import { canaryMark } from '../packages/agent/src/testing/canary.ts'

const notSearched = new Set(['node_modules', '.git'])
/** As it is, and as it would be in base64 or in a URL. */
const forms = formsOf(canaryMark)
let temporary: string

export async function setup(): Promise<void> {
  temporary = await mkdtemp(join(tmpdir(), 'tapetree-tests-'))
  // Like the folder it is in: some tests are another user for a moment.
  await chmod(temporary, 0o755)
  process.env['TMPDIR'] = temporary
}

export function teardown(): void {
  const left = filesBelow(temporary)
  const found = [...left, ...filesBelow('.')].filter(holdsCanary)
  rmSync(temporary, { recursive: true, force: true, maxRetries: 3 })
  console.log(`canaries: ${left.length} files left by the tests were searched, ${found.length} hold one`)
  if (found.length > 0) throw new Error(`A canary got out into ${found.join(', ')}`)
}

function filesBelow(folder: string): string[] {
  return entriesOf(folder).flatMap((entry) => {
    if (entry.isDirectory()) return notSearched.has(entry.name) ? [] : filesBelow(join(folder, entry.name))
    return entry.isFile() ? [join(folder, entry.name)] : []
  })
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return [] // gone meanwhile: it was not left
  }
}

function holdsCanary(path: string): boolean {
  try {
    const bytes = readFileSync(path)
    return forms.some((form) => bytes.includes(form))
  } catch {
    return false // as above
  }
}
