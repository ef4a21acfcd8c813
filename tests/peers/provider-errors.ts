import assert from 'node:assert/strict'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { runCommand } from '../terminal/command.ts'
import { say } from './answers.ts'
import type { Experiment } from './experiment.ts'

const askedFor = 3

const retryAfter: Experiment = {
  experiment: '429 with `Retry-After: 20`',
  others: 'pi: retried after 2 s and 4 s',
  attempt: async () => {
    await using home = await fakeHome()
    const times: number[] = []
    home.provider.script(() => {
      times.push(performance.now())
      if (times.length > 1) return say('Now there is room.')
      return { type: 'failure', error: 'rate-limited', retryAfter: { seconds: askedFor } }
    })
    const { code, stdout, stderr } = await runCommand({ home, args: ['run', 'Go'] })
    assert.equal(code, 0, stderr)
    assert.match(stdout, /Now there is room\./)
    assert.equal(times.length, 2)
    const waited = ((times[1] ?? 0) - (times[0] ?? 0)) / 1000
    assert.ok(waited >= askedFor, `retried after ${waited} s`)
    return `tried with ${askedFor} s, so that it takes no longer: retried once, and not before they have passed`
  },
}

const permanentError: Experiment = {
  experiment: 'a permanent error whose text contains "timeout"',
  others: 'pi: retried three times',
  attempt: async () => {
    await using home = await fakeHome()
    const message = 'The parameter timeout is not known.'
    home.provider.script(() => ({ type: 'failure', error: 'invalid-request', message }))
    const { code, stdout, stderr } = await runCommand({ home, args: ['run', 'Go'] })
    assert.equal(code, 1)
    assert.equal(stdout, '')
    assert.match(stderr, /The parameter timeout is not known\./)
    assert.equal(home.provider.requests.length, 1)
    return 'asked once; the error is told, with exit code 1'
  },
}

export const providerExperiments: readonly Experiment[] = [retryAfter, permanentError]
