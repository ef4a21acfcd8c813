import { startOf, textOf, type Word } from '../words/word.ts'

export interface FindCall {
  roots: Word[]
  /** Present if it prints the names that it finds and nothing else, without following links. */
  names?: {
    /** Each name ends with a NUL. */
    isNul: boolean
    /** Patterns of which a file must match one to be found; empty if any file may be. */
    patterns: string[]
    /** Names of folders in which nothing is found. */
    skipped: string[]
    /** Everything that a file is asked to match. */
    wishes: Word[]
  }
}

/** Where `find` starts, if all it does is look and print; else a sentence on what it may do. */
export function readFind(words: readonly Word[]): FindCall | string {
  const rest = [...words]
  const roots: Word[] = []
  let printsNames = true
  for (let option = optionOf(rest[0]); option !== undefined; option = optionOf(rest[0])) {
    if (option !== '-P') printsNames = false
    rest.shift()
  }
  for (let word = rest[0]; word && isRoot(word); word = rest[0]) {
    if (/^$|^-/.test(startOf(word))) return 'the places where `find` starts are not known'
    roots.push(word)
    rest.shift()
  }
  const filter = new Filter()
  for (let word = rest.shift(); word; word = rest.shift()) {
    const name = textOf(word)
    if (name === undefined) return 'a part of the expression of `find` is not known'
    if (/^-(?:printf|ls|follow)$/.test(name)) printsNames = false
    if (/^(?:[(),!]|-(?:a|and|o|or|not))$/.test(name) || tests.has(name)) {
      filter.add(name)
      continue
    }
    if (!valued.has(name) && !/^-newer[aBcm][aBcmt]$/.test(name)) return `\`find ${name}\` is not among what only looks`
    const value = rest.shift()
    if (!value || value.isSeveral) return `the value of \`find ${name}\` is not known`
    filter.add(name, value)
  }
  return { roots, ...(printsNames && !filter.mixesEnds && { names: filter.names }) }
}

function optionOf(word: Word | undefined): string | undefined {
  const text = word && textOf(word)
  return text !== undefined && /^-[HLP]$/.test(text) ? text : undefined
}

/**
 * What the expression says of the names that it finds. If each part between two `-o` has a `-name`, a file must match one of them,
 * however the parts are grouped.
 */
class Filter {
  readonly #patterns: string[] = []
  readonly #skipped: string[] = []
  readonly #wishes: Word[] = []
  readonly #partsWithName = [false]
  #prints = { nul: false, lines: false }
  #isNegated = false
  #isSimple = true
  #hasOr = false

  add(name: string, word?: Word): void {
    const value = word && textOf(word)
    if (word && !this.#isNegated) this.#wishes.push(word)
    const isNot = name === '!' || name === '-not'
    if ((this.#isNegated && (isNot || name === '(')) || name === ',') this.#isSimple = false
    if (name === '-o' || name === '-or') {
      this.#hasOr = true
      this.#partsWithName.push(false)
    }
    if (name === '-print0') this.#prints.nul = true
    if (name === '-print') this.#prints.lines = true
    if (/^-i?name$/.test(name) && !this.#isNegated && value !== undefined) {
      this.#patterns.push(value)
      this.#partsWithName[this.#partsWithName.length - 1] = true
    }
    const folder =
      name === '-path' && this.#isNegated ? /^\*\/([A-Za-z0-9_.-]+)\/\*$/.exec(value ?? '')?.[1] : undefined
    if (folder !== undefined) this.#skipped.push(folder)
    this.#isNegated = isNot
  }

  /** Some names end with a NUL, others with a line. */
  get mixesEnds(): boolean {
    return this.#prints.nul && this.#prints.lines
  }

  get names(): NonNullable<FindCall['names']> {
    const isFiltered = this.#isSimple && this.#partsWithName.every(Boolean)
    return {
      isNul: this.#prints.nul,
      patterns: isFiltered ? this.#patterns : [],
      skipped: this.#isSimple && !this.#hasOr ? this.#skipped : [],
      wishes: this.#wishes,
    }
  }
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
