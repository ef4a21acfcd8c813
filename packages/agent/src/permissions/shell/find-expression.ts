import { startOf, textOf, type Word } from './word.ts'

export interface FindCall {
  roots: Word[]
  /** It prints the names it finds and nothing else. */
  printsNames: boolean
}

/** Where `find` starts, if all it does is look and print; else a sentence on what it may do. */
export function readFind(words: readonly Word[]): FindCall | string {
  const rest = [...words]
  const roots: Word[] = []
  while (rest[0] && textOf(rest[0]) !== undefined && /^-[HLP]$/.test(textOf(rest[0]) ?? '')) rest.shift()
  for (let word = rest[0]; word && isRoot(word); word = rest[0]) {
    if (/^$|^-/.test(startOf(word))) return 'the places where `find` starts are not known'
    roots.push(word)
    rest.shift()
  }
  let printsNames = true
  for (let word = rest.shift(); word; word = rest.shift()) {
    const name = textOf(word)
    if (name === undefined) return 'a part of the expression of `find` is not known'
    if (/^-(?:printf|ls)$/.test(name)) printsNames = false
    if (/^(?:[(),!]|-(?:a|and|o|or|not))$/.test(name) || tests.has(name)) continue
    if (!valued.has(name) && !/^-newer[aBcm][aBcmt]$/.test(name)) return `\`find ${name}\` is not among what only looks`
    const value = rest.shift()
    if (!value || value.isSeveral) return `the value of \`find ${name}\` is not known`
  }
  return { roots, printsNames }
}

function isRoot(word: Word): boolean {
  return !/^(?:-.|[(!])/.test(startOf(word))
}

const tests = new Set(
  `-print -print0 -prune -quit -ls -empty -true -false -executable -readable -writable -nouser -nogroup -mount -xdev -depth
  -follow -daystart -noleaf -ignore_readdir_race -noignore_readdir_race -warn -nowarn`.split(/\s+/),
)

const valued = new Set(
  `-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname -type -xtype -size -perm -user -group
  -uid -gid -links -inum -samefile -fstype -newer -anewer -cnewer -mtime -atime -ctime -mmin -amin -cmin -used -maxdepth -mindepth
  -printf`.split(/\s+/),
)
