// Each step of the ladder is run as it stands, and must print what is kept beside it. `UPDATE_EXAMPLES=1` writes that anew.
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'

const folder = import.meta.dirname
const names = (await readdir(folder))
  .filter((name) => /^\d\d-.*\.ts$/.test(name))
  .map((name) => basename(name, '.ts'))
  .sort()
const outputs = new Map<string, string>()
let temporary: string

beforeAll(async () => {
  temporary = await mkdtemp(join(tmpdir(), 'examples-'))
  // One process for all of them: most of the time goes into loading the package.
  const lines = names.map((name) => {
    const file = JSON.stringify(join(folder, `${name}.ts`))
    return `console.log('=== ${name}'); await import(${file}).catch((error) => console.log(String(error)))`
  })
  const flags = ['-C', '@tapetree/source', '--input-type=module', '-e', lines.join('\n')]
  const env = { ...process.env, TMPDIR: temporary }
  const { stdout } = await promisify(execFile)(process.execPath, flags, { env, timeout: 60_000, cwd: folder })
  for (const [, name = '', output = ''] of stdout.matchAll(/^=== (\S+)\n([^]*?)(?=^=== |$(?![^]))/gm)) {
    outputs.set(name, output)
  }
}, 60_000)

afterAll(() => rm(temporary, { recursive: true, force: true }))

test.each(names)('%s prints what is written beside it', async (name) => {
  const file = join(folder, 'outputs', `${name}.txt`)
  const output = outputs.get(name) ?? ''
  if (process.env['UPDATE_EXAMPLES'] === '1') await writeFile(file, output)
  expect(output).toBe(await readFile(file, 'utf8'))
})

test('no example leaves anything behind', async () => {
  expect(await readdir(temporary)).toEqual([])
})
