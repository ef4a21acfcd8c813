import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  globSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

export interface File {
  /** Bytes as Latin-1, or the target of a link. */
  content: string
  mode: 'file' | 'executable' | 'link'
}

export type Files = Map<string, File>

/** Lines that only one side changes, and one that both may change. They are far enough apart to merge. */
const ownLine = { variant: 1, user: 9 }
const sharedLine = 5
const lineCount = 12
const deletedPath = 'a/text 1'

/** Random files: texts, binaries, executables, links, and ignored ones. */
export function makeWorkspace(folder: string, { random, git }: { random: () => number; git: boolean }): void {
  const files: Files = new Map()
  for (let index = 0; index < 12; index += 1) {
    const path = `${['', 'a/', 'a/b/', 'c d/'][index % 4]}text ${index}`
    const ending = random() < 0.3 ? '\r\n' : '\n'
    const lines = Array.from({ length: lineCount }, (_, line) => `line ${line} of ${index}`)
    files.set(path, {
      content: lines.map((line) => line + ending).join(''),
      mode: random() < 0.3 ? 'executable' : 'file',
    })
  }
  files.set('binary', { content: '\0\u00ff\r\n'.repeat(20), mode: 'file' })
  files.set('link', { content: 'text 0', mode: 'link' })
  files.set('.gitignore', { content: 'ignored/\n', mode: 'file' })
  files.set('ignored/built', { content: 'built', mode: 'file' })
  files.set('user only', { content: 'at first\n', mode: 'file' })
  mkdirSync(folder, { recursive: true })
  writeFiles(folder, files)
  if (!git) return
  const run = (...command: string[]): void => void execFileSync('git', ['-C', folder, ...command], { stdio: 'ignore' })
  run('init', '--quiet')
  run('add', '--all')
  run('-c', 'user.name=A', '-c', 'user.email=a@b.c', 'commit', '--quiet', '--message', 'first')
}

/** What one side makes of the files. */
export function editAs(side: 'variant' | 'user', { files, random }: { files: Files; random: () => number }): Files {
  const edited: Files = new Map(files)
  for (const [path, file] of files) {
    const chance = random()
    if (path === '.gitignore' || path.startsWith('ignored/') || path === 'user only' || path === deletedPath) continue
    if (chance < 0.12) edited.delete(path)
    else if (chance < 0.2 && file.mode !== 'link')
      edited.set(path, { ...file, mode: file.mode === 'file' ? 'executable' : 'file' })
    else if (path.includes('text')) {
      const numbers = [
        ...(chance < 0.55 ? [ownLine[side]] : []),
        ...(chance > 0.45 && chance < 0.65 ? [sharedLine] : []),
      ]
      const lines = file.content.split('\n')
      for (const number of numbers) lines[number] = `by the ${side} ${random()}`
      edited.set(path, { ...file, content: lines.join('\n') })
    } else if (chance < 0.4) edited.set(path, { ...file, content: `${side} ${random()}` })
  }
  // One deletion that does not conflict.
  if (side === 'variant') edited.delete(deletedPath)
  for (let index = 0; index < 3; index += 1)
    if (random() < 0.5) edited.set(`new/${index}`, { content: `new of the ${side} ${random()}\n`, mode: 'file' })
  edited.set(`of the ${side}`, { content: String(random()), mode: 'file' })
  // A file of the one may be a folder of the other.
  if (random() < 0.3) edited.set(side === 'user' ? 'place' : 'place/inside', { content: side, mode: 'file' })
  if (side === 'user') {
    edited.set('user only', { content: `saved ${random()}\n`, mode: 'file' })
    edited.set('ignored/built', { content: `built again ${random()}`, mode: 'file' })
  }
  return edited
}

/** What the folder has to be in the end, by another way than the one that is tried. Conflicts keep the user's version. */
export function mergedFiles({ base, variant, user }: { base: Files; variant: Files; user: Files }): Files {
  const merged: Files = new Map()
  for (const path of new Set([...base.keys(), ...variant.keys(), ...user.keys()])) {
    const [before, theirs, mine] = [base.get(path), variant.get(path), user.get(path)]
    const file = isSame(mine, before) ? theirs : isSame(theirs, before) || isSame(theirs, mine) ? mine : bothChanged()
    if (file) merged.set(path, file)

    function bothChanged(): File | undefined {
      if (!before || !theirs || !mine || before.mode === 'link') return mine
      const mode = mine.mode === before.mode ? theirs.mode : mine.mode
      const [old, other, own] = [before, theirs, mine].map(({ content }) => content.split('\n'))
      if (isSame({ ...mine, mode: before.mode }, before)) return { content: theirs.content, mode }
      if (isSame({ ...theirs, mode: before.mode }, before)) return { content: mine.content, mode }
      const isConflict = own?.some(
        (line, index) => line !== old?.[index] && other?.[index] !== old?.[index] && line !== other?.[index],
      )
      if (!path.includes('text') || isConflict) return mine
      const lines = own?.map((line, index) => (line === old?.[index] ? (other?.[index] ?? '') : line)) ?? []
      return { content: lines.join('\n'), mode }
    }
  }
  if (user.has('place')) merged.delete('place/inside')
  return merged
}

export function readFiles(folder: string): Files {
  const files: Files = new Map()
  const read = (below: string): void => {
    for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`
      const place = join(folder, path)
      if (path === '.git') continue
      if (entry.isDirectory()) read(path)
      else if (entry.isSymbolicLink()) files.set(path, { content: readlinkSync(place), mode: 'link' })
      else {
        const isExecutable = (lstatSync(place).mode & 0o111) !== 0
        files.set(path, { content: readFileSync(place, 'latin1'), mode: isExecutable ? 'executable' : 'file' })
      }
    }
  }
  read('')
  return files
}

/** Writes these files, or only some of them, and deletes all others. */
export function writeFiles(folder: string, files: Files, only?: readonly string[]): void {
  if (!only) for (const path of readFiles(folder).keys()) if (!files.has(path)) rmSync(join(folder, path))
  const current = readFiles(folder)
  for (const [path, file] of files) {
    if ((only && !only.includes(path)) || isSame(current.get(path), file)) continue
    const place = join(folder, path)
    mkdirSync(dirname(place), { recursive: true })
    rmSync(place, { recursive: true, force: true })
    if (file.mode === 'link') symlinkSync(file.content, place)
    else {
      writeFileSync(place, file.content, 'latin1')
      chmodSync(place, file.mode === 'executable' ? 0o755 : 0o644)
    }
  }
}

/** A sentence for each difference. */
export function compareFiles(found: Files, expected: Files): string[] {
  const problems: string[] = []
  for (const path of new Set([...found.keys(), ...expected.keys()])) {
    const [is, should] = [found.get(path), expected.get(path)]
    if (!isSame(is, should))
      problems.push(`${path} is ${JSON.stringify(is)?.slice(0, 300)}, not ${JSON.stringify(should)?.slice(0, 300)}`)
  }
  return problems
}

/** Of all names and bytes in the git folder. */
export function gitHash(folder: string): string {
  const hash = createHash('sha256')
  for (const path of globSync('.git/**', { cwd: folder }).toSorted((a, b) => (a < b ? -1 : 1))) {
    const stats = lstatSync(join(folder, path))
    hash.update(`${path} ${stats.mode} ${stats.isFile() ? stats.mtimeMs : ''} `)
    if (stats.isFile()) hash.update(readFileSync(join(folder, path)))
  }
  return hash.digest('hex')
}

function isSame(a: File | undefined, b: File | undefined): boolean {
  return a?.content === b?.content && a?.mode === b?.mode
}
