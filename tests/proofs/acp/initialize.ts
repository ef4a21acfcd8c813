import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { bundle } from '../../../packages/cli/src/testing/bundled-command.ts'
import { fakeHome, type FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'

const rounds = 5
const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } }

/** How many times of an empty program `tapetree acp` takes to answer `initialize`: the best of several rounds of both, in turn. */
export async function initializeRatio(): Promise<number> {
  await using home = await fakeHome()
  const bare: number[] = []
  const answer: number[] = []
  for (let round = 0; round < rounds; round++) {
    bare.push(await timed(home, ['-e', '0']))
    answer.push(await timed(home, [bundle, 'acp'], `${JSON.stringify(initialize)}\n`))
  }
  return Math.min(...answer) / Math.min(...bare)
}

/** Until the first byte of its output, or its end, in milliseconds. */
async function timed({ cwd, env }: FakeHome, args: readonly string[], input = ''): Promise<number> {
  const isAsked = input !== ''
  const begun = performance.now()
  const child = spawn(process.execPath, args, { cwd, env, stdio: ['pipe', 'pipe', 'ignore'] })
  const ended = once(child, 'close')
  child.stdin.write(input)
  const first = await Promise.race([once(child.stdout, 'data').then(() => 'answer'), ended.then(() => 'end')])
  if (isAsked && first === 'end') throw new Error(`The command ended without an answer: ${args.join(' ')}`)
  const took = performance.now() - begun
  child.stdin.end()
  await ended
  return took
}
