import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { runCli } from '../../cli.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { fakeHome } from '../../testing/fake-home.ts'
import { testIo } from '../../testing/test-io.ts'

test('models are listed with their limits, prices and whether there is a key, which is not shown', async () => {
  await using home = await fakeHome()
  const io = testIo(home)
  expect(await runCli(['models', '--json'], io)).toBe(exitCodes.ok)
  const { models } = JSON.parse(io.out()) as { models: { reference: string; is_usable: boolean }[] }
  expect(models.find(({ reference }) => reference === 'fake/model-1')).toMatchObject({
    provider: 'fake',
    context_tokens: 100_000,
    output_tokens: 8000,
    prices: { input: 1, output: 5 },
    is_usable: true,
    key: { type: 'found', origin: 'the environment variable FAKE_API_KEY' },
  })
  expect(models.some(({ is_usable }) => !is_usable)).toBe(true)
  expect(io.out()).not.toContain('no-secret')
})

test('models of one provider are a table, and an unknown provider is an error', async () => {
  await using home = await fakeHome()
  const io = testIo(home)
  expect(await runCli(['models', '--provider', 'fake'], io)).toBe(exitCodes.ok)
  expect(io.out().split('\n')).toEqual([
    expect.stringMatching(/^MODEL +NAME +CONTEXT +OUTPUT/),
    expect.stringMatching(/^fake\/model-1 +model-1 +100k +8k +1 +5 +from the environment variable FAKE_API_KEY$/),
    '',
  ])
  const wrong = testIo(home)
  expect(await runCli(['models', '--provider', 'antropic'], wrong)).toBe(exitCodes.noModel)
  expect(wrong.err()).toContain('Did you mean anthropic?')
})

test('completion words are printed alone, and on failure there are none', async () => {
  await using home = await fakeHome()
  const io = testIo(home)
  expect(await runCli(['completion', '--words', 'model'], io)).toBe(exitCodes.ok)
  expect(io.out()).toContain('fake/model-1\tmodel-1\n')
  const broken = testIo({ ...home, env: { ...home.env, TAPETREE_HOME: fileURLToPath(import.meta.url) } })
  expect(await runCli(['completion', '--words', 'session'], broken)).toBe(exitCodes.ok)
  expect(broken.out() + broken.err()).toBe('')
})
