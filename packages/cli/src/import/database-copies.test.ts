import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

test('a process that only looked for sessions of opencode leaves no copy of its database behind', async () => {
  const home = await mkdtemp(join(tmpdir(), 'copies-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  const [folder, temporary] = [join(home, '.local/share/opencode'), join(home, 'tmp')]
  await mkdir(folder, { recursive: true })
  await mkdir(temporary)
  const database = new DatabaseSync(join(folder, 'opencode.db'))
  database.exec("CREATE TABLE session (id, directory, time_created); INSERT INTO session VALUES ('s1', '/work', 1)")
  database.close()
  const program = `
    import { findSessions } from ${JSON.stringify(join(import.meta.dirname, 'find-sessions.ts'))}
    const { sessions } = await findSessions({ machine: { home: ${JSON.stringify(home)}, env: {} } })
    console.log(sessions.length)`
  const options = ['-C', '@tapetree/source', '--input-type=module', '--eval', program]
  const { stdout } = await promisify(execFile)(process.execPath, options, {
    env: { ...process.env, TMPDIR: temporary },
  })
  expect(stdout).toBe('1\n')
  expect(await readdir(temporary)).toEqual([])
})
