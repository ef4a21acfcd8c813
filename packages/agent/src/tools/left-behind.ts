/** Why a signal is aborted where a process ends and its run stays open: what can go on without us is not to be stopped. */
export class LeftBehind extends Error {
  override readonly name = 'LeftBehind'

  constructor() {
    super('The process was ended while this was going on. It is taken up when the run is resumed.')
  }
}
