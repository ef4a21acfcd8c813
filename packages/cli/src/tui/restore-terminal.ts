/**
 * Whatever ends the process, the terminal is given back first: an error that nobody caught, or an exit in the middle. Gives a function that
 * takes the watch off again.
 */
export function restoreOnDeath(restore: () => void): () => void {
  // A monitor sees an error before whoever reports it, and does not count as having handled it.
  process.on('uncaughtExceptionMonitor', restore)
  process.on('exit', restore)
  return () => {
    process.off('uncaughtExceptionMonitor', restore)
    process.off('exit', restore)
  }
}
