/** Samples in a sparkline: four minutes at one every two seconds. */
export const SPARK_SAMPLES = 120;
