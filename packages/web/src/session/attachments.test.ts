import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseBlocks } from '../markdown/blocks.ts'
import { attach, withFiles } from './attachments.ts'

const storeImage = async (): Promise<{ id: string }> => ({ id: 'digest' })

test('an image is stored, and text is read', async () => {
  const image = new File(['x'], 'a.png', { type: 'image/png' })
  expect(await attach(image, storeImage)).toEqual({ type: 'image', name: 'a.png', id: 'digest' })
  expect(await attach(new File(['hé'], 'a.md'), storeImage)).toEqual({ type: 'text', name: 'a.md', text: 'hé' })
})

test('other files are refused with a sentence that says what works', async () => {
  const works = 'Attach images (PNG, JPEG, GIF, WebP) and text files up to 256 KB.'
  const tooLarge = new File(['x'.repeat(256 * 1024 + 1)], 'a.log')
  await expect(attach(tooLarge, storeImage)).rejects.toThrow(`a.log is too large. ${works}`)
  for (const bytes of [new Uint8Array([0xff, 0xfe, 0xfd]), new Uint8Array([65, 0, 66])])
    await expect(attach(new File([bytes], 'a.zip'), storeImage)).rejects.toThrow(
      `a.zip is neither text nor an image. ${works}`,
    )
})

test('a text file is named and fenced, and no content ends the fence', () => {
  expect(withFiles('Look.', [{ type: 'text', name: 'a.ts', text: 'const x = 1' }])).toBe(
    'Look.\n\nFile a.ts:\n```ts\nconst x = 1\n```',
  )
  fc.assert(
    fc.property(fc.array(fc.constantFrom('`', '```', '````', '\n', 'x', '~~~', ' '), { maxLength: 30 }), (pieces) => {
      const text = pieces.join('')
      const { tokens } = parseBlocks(withFiles('', [{ type: 'text', name: 'a.txt', text }]))
      const written = tokens.filter(({ type }) => type !== 'space')
      expect(written.map(({ type }) => type)).toEqual(['paragraph', 'code'])
    }),
  )
})
