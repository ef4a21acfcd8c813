import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { licencesOf } from './licences.ts'

test('each package of others is named once with its licence, and what is ours is not', async () => {
  const root = await mkdtemp(join(tmpdir(), 'tapetree-licences-'))
  onTestFinished(() => rm(root, { recursive: true }))
  const install = async (name: string, manifest: object, licence?: string): Promise<string> => {
    const folder = join(root, 'node_modules', name)
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name, version: '1.2.3', ...manifest }))
    if (licence !== undefined) await writeFile(join(folder, 'LICENSE.md'), licence)
    return folder
  }
  const zebra = await install('zebra', {}, 'Do what you like.\n')
  const ant = await install('@small/ant', { license: 'Apache-2.0', author: { name: 'Ann' } })
  const text = licencesOf([join(zebra, 'one.js'), join(zebra, 'lib/two.js'), join(ant, 'a.js'), join(root, 'main.ts')])
  expect(text.split(/\n-+\n/).map((section) => section.trim())).toEqual([
    'The command tapetree holds these packages.',
    '@small/ant 1.2.3\n\nCopyright (c) Ann\n\nLicence: Apache-2.0. Its text stands in this file with another package.',
    'zebra 1.2.3\n\nDo what you like.',
  ])
  const silent = await install('silent', {})
  expect(() => licencesOf([join(silent, 'a.js')])).toThrow(
    'silent is in the bundle and says nothing about its licence.',
  )
})
