import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execFileSync } from 'node:child_process'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { SmallDisk } from '../proofs/disk-full/small-disk.ts'
import { startCommand } from '../terminal/command.ts'
import { say, shownTo } from './answers.ts'
import type { Experiment } from './experiment.ts'

const questions = 20

/** Needs mounts of its own: `npm run proof peers` runs in them. */
const diskFull: Experiment = {
  experiment: 'disk full, space freed, go on',
  others: 'pi: context of 41 messages becomes 4 after a reload',
  attempt: async () => {
    await using outer = await fakeHome()
    const folder = await mkdtemp(join(tmpdir(), 'tapetree-small-'))
    const disk = new SmallDisk(folder)
    try {
      const own = join(folder, 'tapetree')
      await mkdir(own, { mode: 0o700 })
      const settings = await readFile(join(outer.env['TAPETREE_HOME'] ?? '', 'settings.json'))
      await writeFile(join(own, 'settings.json'), settings, { mode: 0o600 })
      const home = { ...outer, env: { ...outer.env, TAPETREE_HOME: own } }
      outer.provider.script(() => say('Answered.'))
      await using run = startCommand({ home, args: ['run', '--input', 'jsonl', '--jsonl'], stdin: { type: 'open' } })
      const ask = (text: string): void => run.writeLine({ type: 'prompt', text })
      for (let number = 1; number <= questions; number++) {
        ask(`Question ${number}`)
        await run.untilSaid((said) => said.split('"type":"run_end"').length > number)
      }
      disk.fill()
      // Longer than what is left of the last page.
      ask(`Question without room ${'x'.repeat(10_000)}`)
      await run.untilSaid('could not be stored', 'stderr')
      disk.makeRoom()
      ask('Question with room')
      await run.untilSaid((said) => said.split('"type":"run_end"').length > questions + 1)
      run.endInput()
      await run.ended
      const before = outer.provider.requests.length
      await using again = startCommand({ home, args: ['run', '-c', 'Last question'] })
      const { code, stderr } = await again.ended
      assert.equal(code, 0, stderr)
      const shown = shownTo(await outer.provider.request(before + 1))
      for (let number = 1; number <= questions; number++) {
        assert.ok(shown.includes(`user: Question ${number}`), `Question ${number} is gone`)
      }
      assert.equal(shown.length, 2 * (questions + 1) + 1)
      return `the prompt is refused with the reason, the next one goes through, and after a reload all ${shown.length} messages are there`
    } finally {
      execFileSync('umount', ['--lazy', folder])
      await rm(folder, { recursive: true, force: true })
    }
  },
}

export const diskExperiments: readonly Experiment[] = [diskFull]
