import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'

test.each(['/', undefined])('an untrusted module does not load, with the project in %s', async (root) => {
  await using folder = await TestFolder.make({ 'a.mjs': 'console.log("loaded")\n' })
  const module = new URL('./trusted-modules.ts', import.meta.url).href
  const options = { root: root ?? folder.path, packages: [] }
  const program = `import { loadOnlyTrusted } from ${JSON.stringify(module)}
    loadOnlyTrusted({ ...${JSON.stringify(options)}, files: new Map() })
    await import(${JSON.stringify(folder.at('a.mjs'))}).catch((error) => console.log(error.message))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  expect(stdout).toContain('is not part of what you trusted')
})
