import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { expect, test } from 'vitest'

test('the root entry runs in a browser: none of its imports needs Node', async () => {
  const reached = new Set<string>()
  const bundle = await rolldown({
    input: join(import.meta.dirname, '../index.ts'),
    platform: 'browser',
    resolve: { conditionNames: ['browser', '@tapetree/source', 'import', 'default'] },
    logLevel: 'silent',
    plugins: [
      {
        name: 'note-imports',
        resolveId: (source) => {
          reached.add(source)
          return null
        },
      },
    ],
  })
  const { output } = await bundle.generate({ format: 'esm' })
  await bundle.close()
  expect([...reached].filter((source) => source.startsWith('node:'))).toEqual([])
  expect(output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.imports : []))).toEqual([])
  expect(output[0].code).not.toMatch(/['"]node:/)
})

test("the browser checksum equals Node's", async () => {
  const browser = await import('./crc32.ts')
  const node = await import('./crc32.node.ts')
  for (const text of ['', 'a', '{"seq":1}', 'große Wörter 漢字 🙂']) {
    expect(browser.crc32(text)).toBe(node.crc32(text))
    expect(browser.crc32(new TextEncoder().encode(text))).toBe(node.crc32(text))
  }
})
