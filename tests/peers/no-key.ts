import assert from 'node:assert/strict'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { builtCommand } from '../terminal/command-path.ts'
import { runCommand } from '../terminal/command.ts'
import { startTerminal } from '../terminal/terminal.ts'
import type { Experiment } from './experiment.ts'

/** In a network that has nothing in it, not even a way to this machine. */
const withoutNetwork = ['unshare', '--net', ...builtCommand] as const

const noKey: Experiment = {
  experiment: 'no key, no network',
  others: 'Codex and opencode hang; Claude Code prints its error to stdout and calls it success',
  attempt: async () => {
    await using fake = await fakeHome()
    // A home without settings: nothing has been set up.
    const home = { cwd: fake.cwd, env: { ...fake.env, TAPETREE_HOME: `${fake.home}/none` } }
    const { code, stdout, stderr } = await runCommand({
      home,
      args: ['run', 'Hello'],
      command: withoutNetwork,
      timeoutMs: 10_000,
    })
    assert.equal(code, 4)
    assert.equal(stdout, '')
    assert.match(stderr, /tapetree login/)
    assert.match(stderr, /tapetree tour/)
    await using chat = startTerminal({ home, command: withoutNetwork })
    await chat.waitFor(/tour/i)
    return '`run` exits with 4 at once, nothing on stdout, two commands that help on stderr; the chat offers a tour that needs neither'
  },
}

export const keyExperiments: readonly Experiment[] = [noKey]
