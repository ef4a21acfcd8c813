import { thinkingLevels } from '@tapetree/agent/models'
import { permissionModes, ruleSchema } from '@tapetree/agent/permissions'
import { describe, expect, test } from 'vitest'
import { runCommands } from '../commands/table/run.ts'
import { parse } from '../command-line/parse.ts'
import { ruleText, runOptionsOf, type RunOptions } from './run-options.ts'

function optionsOf(...args: string[]): RunOptions {
  const parsed = parse(['run', ...args], runCommands)
  if (parsed.type !== 'run') throw new Error('This is no run.')
  return runOptionsOf(parsed.invocation)
}

describe('the options of run', () => {
  test('become settings for this run', () => {
    const options = optionsOf(
      ...['--allow', 'command npm test', '--allow', '{"type":"command","match":["git","commit","-m","a b"]}'],
      ...['--deny', 'write ~/notes', '--permission-mode', 'accept-edits', '--thinking', 'low'],
      ...['--max-turns', '3', '--max-cost', '0.5', '--timeout', '2', '--append-system-prompt', 'Be brief.'],
      ...['--tools', 'read, bash', 'Fix', 'it'],
    )
    expect(options).toMatchObject({
      prompt: 'Fix it',
      timeoutMs: 2000,
      toolNames: ['read', 'bash'],
      flags: {
        thinkingLevel: 'low',
        permissions: {
          mode: 'accept-edits',
          allow: [
            { type: 'command', match: 'npm test' },
            { type: 'command', match: ['git', 'commit', '-m', 'a b'] },
          ],
          deny: [{ type: 'write', match: '~/notes' }],
        },
        limits: { run: { turns: 3, cost: 0.5 } },
        systemPrompt: { append: 'Be brief.' },
      },
    })
  })

  test.each([
    [['--json', '--jsonl', 'x'], '--jsonl'],
    [['-c', '--session', 'last', 'x'], '--continue'],
    [['--allow', 'everything', 'x'], 'is not a rule'],
    [['--allow', 'read src', 'x'], 'is not a rule'],
    [['--max-turns', '1.5', 'x'], 'whole number'],
    [['--timeout', 'soon', 'x'], '--timeout'],
    [['--timeout', '1', '--max-minutes', '1', 'x'], '--max-minutes'],
    [['--input', 'jsonl', '--output-schema', '{}'], '--output-schema'],
    [['--sandbox', 'required', '--permission-mode', 'auto', 'x'], '--sandbox required'],
    [['--sandbox', 'maybe', 'x'], '--sandbox'],
    [['--max-memory', 'much', 'x'], '--max-memory must be a size'],
    [['--max-file-size', '0', 'x'], '--max-file-size'],
    [['--max-processes', '1.5', 'x'], 'whole number'],
    [['--max-memory', '1G', '--permission-mode', 'auto', 'x'], 'mode auto runs them outside'],
  ])('that are invalid are refused: %j', (args, words) => {
    expect(() => optionsOf(...args)).toThrow(words)
  })

  test('that require a sandbox choose mode sandboxed', () => {
    const { flags } = optionsOf('--sandbox', 'required', 'x')
    expect(flags).toEqual({ permissions: { mode: 'sandboxed' }, sandbox: { isRequired: true } })
  })

  test('that limit commands require a sandbox, because nothing else enforces the limits', () => {
    const { flags, ownerOptions } = optionsOf(
      ...['--max-cpu-seconds', '60', '--max-memory', '1.5G', '--max-processes', '100', '--max-file-size', '10mb', 'x'],
    )
    const limits = { cpuSeconds: 60, memoryBytes: 1.5 * 1024 ** 3, processes: 100, fileBytes: 10 * 1024 ** 2 }
    expect(flags).toEqual({ permissions: { mode: 'sandboxed' }, sandbox: { isRequired: true, limits } })
    expect(ownerOptions).toEqual(['--max-cpu-seconds', '--max-memory', '--max-processes', '--max-file-size'])
  })

  test('limit the time in minutes or in seconds', () => {
    expect(optionsOf('--max-minutes', '1.5', 'x').timeoutMs).toBe(90_000)
  })

  test('offer every mode and level', () => {
    const choicesOf = (wanted: string) => runCommands[0]?.options?.find(({ name }) => name === wanted)?.choices
    expect(choicesOf('permission-mode')).toEqual(permissionModes)
    expect(choicesOf('thinking')).toEqual(thinkingLevels)
  })

  test('write a rule in the form that can be typed again', () => {
    const rules = [['git', 'log', '*'], ['echo', 'a b'], 'npm test'].map((match) =>
      ruleSchema.parse({ effect: 'allow', type: 'command', match }),
    )
    expect(rules.map(ruleText)).toEqual([
      'command git log *',
      '{"type":"command","match":["echo","a b"]}',
      'command npm test',
    ])
  })
})
