import { assistant, user } from '@tapetree/session/testing'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { SessionHome } from '../../testing/session-home.ts'

const guide = readFileSync(new URL('../../../../../docs/guides/sessions.md', import.meta.url), 'utf8')

/** The command lines of the guide, split into words, without pipes. */
const commands = Array.from(guide.matchAll(/^```console\n([^]*?)^```/gm), ([, block = '']) => block)
  .flatMap((block) => block.split('\n'))
  .map((line) => line.replace(/\s+#.*$/, '').replace(/\s*\|.*$/, ''))
  .filter((line) => line !== '')
  .map((line) => Array.from(line.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, word]) => quoted ?? word ?? ''))

test('every command of the guide works as written, in order', async () => {
  await using home = await SessionHome.make()
  await home.session(async (session) => {
    for (let index = 0; index < 25; index++) {
      await user(session, `question ${index}`)
      await assistant(session, `answer ${index}`)
    }
  })
  expect(commands.length).toBeGreaterThan(20)
  const failed: unknown[] = []
  for (const [, ...args] of commands) {
    const { code, err } = await home.run(args)
    if (code !== 0) failed.push({ args, err })
  }
  expect(failed).toEqual([])
})
