import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What the bundle holds of others, each with its version and its licence: whoever hands it on has to hand that on too. */
export function licencesOf(moduleIds: Iterable<string>): string {
  const folders = new Set([...moduleIds].flatMap(packageFolderOf))
  const sections = new Map([...folders].map(sectionOf))
  const sorted = [...sections].toSorted(([left], [right]) => (left < right ? -1 : 1))
  return `The command tapetree holds these packages.\n${sorted.map(([, section]) => section).join('')}`
}

/** None for what is ours. */
function packageFolderOf(moduleId: string): string[] {
  const folder = /^\0?(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/.exec(moduleId)?.[1]
  return folder === undefined ? [] : [folder]
}

interface Manifest {
  name: string
  version: string
  license?: string
  author?: string | { name: string }
}

function sectionOf(folder: string): [title: string, section: string] {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  const title = `${manifest.name} ${manifest.version}`
  const file = readdirSync(folder).find((name) => /^(?:licen[cs]e|copying)/i.test(name))
  const text = file === undefined ? withoutFile(manifest) : readFileSync(join(folder, file), 'utf8').trim()
  return [title, `\n${'-'.repeat(78)}\n${title}\n\n${text}\n`]
}

function withoutFile({ name, license, author = 'its authors' }: Manifest): string {
  if (license === undefined) throw new Error(`${name} is in the bundle and says nothing about its licence.`)
  const owner = typeof author === 'string' ? author : author.name
  if (license === 'MIT') return `The MIT License\n\nCopyright (c) ${owner}\n\n${mit}`
  return `Copyright (c) ${owner}\n\nLicence: ${license}. Its text stands in this file with another package.`
}

const mit = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software
is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES
OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE
LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR
IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`
