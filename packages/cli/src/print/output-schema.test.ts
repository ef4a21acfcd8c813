import { describe, expect, test } from 'vitest'
import { readOutputSchema } from './output-schema.ts'

const schema = '{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}'

describe('an output schema', () => {
  test('is sent to the model and accepts matching JSON, in a fence or not', async () => {
    const { check, instructions } = await readOutputSchema(schema, { cwd: '/' })
    expect(instructions).toContain('"required"')
    expect(check('{"ok":true,"more":1}')).toEqual({ type: 'valid', value: { ok: true, more: 1 } })
    expect(check('```json\n{"ok":false}\n```')).toEqual({ type: 'valid', value: { ok: false } })
  })

  test('reports what does not match', async () => {
    const { check } = await readOutputSchema(schema, { cwd: '/' })
    expect(check('{"ok":"yes"}')).toMatchObject({ type: 'invalid', fault: expect.stringContaining('ok') as string })
    expect(check('Yes.')).toMatchObject({ type: 'invalid', fault: expect.stringContaining('not JSON') as string })
  })

  test('that is missing or invalid is refused before anything is sent', async () => {
    await expect(readOutputSchema('gone.json', { cwd: '/' })).rejects.toMatchObject({ code: 5 })
    await expect(readOutputSchema('dev/zero', { cwd: '/' })).rejects.toMatchObject({
      code: 5,
      why: 'It is not a regular file.',
    })
    await expect(readOutputSchema('{"type":', { cwd: '/' })).rejects.toMatchObject({ code: 2 })
    await expect(readOutputSchema('{"type":"nothing"}', { cwd: '/' })).rejects.toMatchObject({ code: 2 })
  })
})
