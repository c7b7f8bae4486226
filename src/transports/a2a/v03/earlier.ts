import type { Generation, Task } from '../model.ts'
import * as v01 from '../v01/write.ts'
import { fromTask } from './write.ts'

/** Made with the shapes of 0.1, and so shown with them: `tasks/get` and `tasks/cancel` are methods of several generations. */
export function isOf01(generation: Generation): boolean {
  return generation === '0.1' || generation === 'tasks'
}

/** A task in the shape of the generation that made it, for those before 1.0. One of 1.0 is shown as 0.3 would. */
export function earlierTask(task: Task, generation: Generation): object {
  return isOf01(generation) ? v01.fromTask(task) : fromTask(task)
}
