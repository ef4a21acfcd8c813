import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { deadLinks } from './dead-links.ts'

async function site(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-site-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  return folder
}

test('a site has no dead link if every link leads to a file or an anchor', async () => {
  const folder = await site({
    'index.html': '<a href="/guides/one.html#first">1</a><a class="x" href="./guides/">2</a><img src="/a.svg">',
    'guides/index.html': '<a href="./one.html#a-%C3%A9">1</a><a href="https://example.com/none">2</a>',
    'guides/one.html': '<h2 id="first">1</h2><h2 id="a-é">2</h2><a href="#first">3</a><a href="../">4</a>',
    'a.svg': '<svg/>',
  })
  expect(await deadLinks(folder)).toEqual([])
})

test('a link to a missing page, picture or anchor is reported with its page', async () => {
  const folder = await site({
    'index.html': '<a href="/none.html">1</a><img alt="" src="none.svg"><a href="guides/one.html#none">2</a>',
    'guides/one.html': '<a href="#none">1</a>',
  })
  expect((await deadLinks(folder)).sort()).toEqual([
    'guides/one.html: #none leads to no anchor',
    'index.html: /none.html leads to no file',
    'index.html: guides/one.html#none leads to no anchor',
    'index.html: none.svg leads to no file',
  ])
})
