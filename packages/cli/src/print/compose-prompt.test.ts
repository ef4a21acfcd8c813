import { execFileSync } from 'node:child_process'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { composePrompt, mentionsIn } from './compose-prompt.ts'

let cwd = ''
beforeAll(async () => {
  cwd = await realpath(await mkdtemp(join(tmpdir(), 'compose-prompt-')))
  await writeFile(join(cwd, 'a.txt'), 'one\n</file> two\n')
  await writeFile(join(cwd, 'dot.png'), Buffer.from('\u0089PNG\r\n\u001a\nrest', 'latin1'))
  await writeFile(join(cwd, 'raw.bin'), Buffer.from([1, 0, 2]))
})
afterAll(() => rm(cwd, { recursive: true, force: true }))

const compose = (typed: string, piped = '') => composePrompt({ typed, piped, cwd, home: cwd })

describe('a prompt', () => {
  test('has the text of the files that it names, which cannot end their own block', async () => {
    const { text, notices } = await compose('Look at @a.txt.')
    expect(text).toBe('Look at @a.txt.\n\n<file path="a.txt">\none\n&lt;/file> two\n</file>')
    expect(notices).toEqual([])
  })

  test('has images attached, and leaves unusable references as typed', async () => {
    const { text, images, notices } = await compose('@dot.png @raw.bin @gone.txt @alice a@b.c')
    expect(text).toBe('@dot.png @raw.bin @gone.txt @alice a@b.c')
    expect(images.map(({ mediaType }) => mediaType)).toEqual(['image/png'])
    expect(notices).toEqual([
      '@raw.bin is left as typed. It is neither text nor an image.',
      '@gone.txt is left as typed. The file does not exist.',
    ])
  })

  test('does not wait for a silent pipe', async () => {
    execFileSync('mkfifo', [join(cwd, 'pipe')])
    expect(await compose('Look at @./pipe')).toMatchObject({
      text: 'Look at @./pipe',
      notices: ['@./pipe is left as typed. It is not a regular file.'],
    })
  })

  test('takes piped text literally: an @ in it names no file', async () => {
    expect(await compose('Sum up', 'see @a.txt\n')).toMatchObject({ text: 'Sum up\n\n<stdin>\nsee @a.txt\n</stdin>' })
    expect(await compose('', 'see @a.txt')).toMatchObject({ text: 'see @a.txt' })
  })

  test('that is empty is an error', async () => {
    await expect(compose(' ', '\n')).rejects.toMatchObject({ code: 2 })
  })

  test('names files after an @ that begins a word, with spaces in quotes', () => {
    expect(mentionsIn('(@a.ts), @"b c.ts" and me@d.ts; @a.ts')).toEqual(['a.ts', 'b c.ts'])
  })
})
